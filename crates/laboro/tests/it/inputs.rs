//! Every form in which a person may say what to run.

use crate::rig::Rig;

#[test]
fn a_file_of_commands_runs_line_by_line() {
    let rig = Rig::new();
    rig.write(
        "jobs.txt",
        "# a comment\n\necho one\n   # another\necho two \\\n  and more\necho 'three # not a comment' | cat\n",
    );
    let ran = rig.run(["-k", "jobs.txt"]);
    assert_eq!(ran.expect(0).out(), "one\ntwo and more\nthree # not a comment\n");
    ran.says("3 of 3 tasks done");
}

#[test]
fn commands_come_from_standard_input_too() {
    let rig = Rig::new();
    let ran = rig.laboro(["run", "-k", "-"]).input("echo a\necho b\n").run();
    assert_eq!(ran.expect(0).out(), "a\nb\n");
}

#[test]
fn a_command_runs_once_for_each_value() {
    let rig = Rig::new();
    let ran = rig.run(["-k", "--", "echo", "<{}>", ":::", "a", "b c", "d'\"e"]);
    assert_eq!(ran.expect(0).out(), "<a>\n<b c>\n<d'\"e>\n");
    let ran = rig.run(["-k", "--", "echo", ":::", "appended"]);
    assert_eq!(ran.expect(0).out(), "appended\n");
}

#[test]
fn a_command_without_values_runs_once() {
    let rig = Rig::new();
    assert_eq!(rig.run(["-k", "--", "echo", "alone"]).expect(0).out(), "alone\n");
}

#[test]
fn values_come_from_a_pipe_and_from_files() {
    let rig = Rig::new();
    let ran = rig.laboro(["run", "-k", "--", "echo", "{}"]).input("x\n\ny z\n").run();
    assert_eq!(ran.expect(0).out(), "x\ny z\n");
    let ran = rig.laboro(["run", "-k", "-0", "--", "echo", "{}"]).input("p\nq\0r\0").run();
    assert_eq!(ran.expect(0).out(), "p\nq\nr\n");
    rig.write("values", "1\n2\n");
    let ran = rig.run(["-k", "--", "echo", "{}", "::::", "values"]);
    assert_eq!(ran.expect(0).out(), "1\n2\n");
}

#[test]
fn numbers_make_an_array() {
    let rig = Rig::new();
    let ran = rig.run(["-k", "--array", "0-100:25", "--", "echo", "{#}:{}"]);
    assert_eq!(ran.expect(0).out(), "1:0\n2:25\n3:50\n4:75\n5:100\n");
}

#[test]
fn several_lists_combine_or_stand_side_by_side() {
    let rig = Rig::new();
    let lists = ["--", "echo", "{1}{2}", ":::", "a", "b", ":::", "1", "2"];
    let ran = rig.run(["-k"].iter().chain(&lists));
    assert_eq!(ran.expect(0).out(), "a1\na2\nb1\nb2\n");
    let ran = rig.run(["-k", "--zip"].iter().chain(&lists));
    assert_eq!(ran.expect(0).out(), "a1\nb2\n");
    let uneven = ["-k", "--zip", "--", "echo", "{1}{2}", ":::", "a", "b", ":::", "1"];
    rig.run(uneven).expect(2);
}

#[test]
fn placeholders_take_a_path_apart() {
    let rig = Rig::new();
    let words = ["-k", "--", "echo", "{.} {/} {//} {/.} {ext} {#} {name}", ":::", "d/f.tar.gz"];
    let ran = rig.run(words);
    assert_eq!(ran.expect(0).out(), "d/f.tar f.tar.gz d f.tar gz 1 1\n");
}

#[test]
fn one_word_with_shell_syntax_is_a_shell_line_and_its_values_are_quoted() {
    let rig = Rig::new();
    let value = "it's; echo \"$HOME\" `id` $(id) \\";
    let ran = rig.run(["-k", "--", "printf '%s\\n' {} | tr a-z A-Z", ":::", value]);
    assert_eq!(ran.expect(0).out(), format!("{}\n", value.to_uppercase()));
}

#[test]
fn json_tasks_run_one_a_line() {
    let rig = Rig::new();
    rig.write(
        "tasks.jsonl",
        concat!(
            r#"{"name": "first", "command": "echo one > one"}"#,
            "\n",
            r#"{"name": "second", "command": ["cat", "one"], "after": ["first"]}"#,
            "\n",
            r#"{"name": "third", "command": "echo three"}"#,
            "\n",
            r#"{"name": "many", "foreach": ["x", "y"], "command": "echo {}", "after": "second"}"#,
            "\n",
        ),
    );
    let ran = rig.run(["-k", "tasks.jsonl"]);
    assert_eq!(ran.expect(0).out(), "one\nthree\nx\ny\n");
}

#[test]
fn a_named_shell_sees_every_line() {
    let rig = Rig::new();
    rig.write("jobs.txt", "/bin/echo through\n");
    rig.write("shell", "#!/bin/sh\necho \"shell got: $2\"\n");
    let shell = rig.at("shell");
    std::process::Command::new("chmod").arg("+x").arg(&shell).status().unwrap();
    let ran = rig.run(["-k", "--shell", shell.to_str().unwrap(), "jobs.txt"]);
    assert_eq!(ran.expect(0).out(), "shell got: /bin/echo through\n");
}

#[test]
fn slow_three_thousand_lines_run() {
    let rig = Rig::new();
    rig.write("jobs.txt", "/bin/true\n".repeat(2990) + &"echo said\n".repeat(10));
    let ran = rig.run(["-k", "jobs.txt"]);
    assert_eq!(ran.expect(0).out(), "said\n".repeat(10));
    ran.says("3000 of 3000 tasks done");
    assert_eq!(rig.journal()["tasks"]["done"], 3000);
}
