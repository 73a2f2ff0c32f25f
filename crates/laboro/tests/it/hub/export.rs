//! Tables of attempts, read by the programs that they are for.

use super::whole::Whole;
use crate::rig::{not_tried, python};
use std::process::Command;

/// What this Python program prints, in the directory of the hub; `None` if it has not what it imports.
fn read_by_python(hub: &Whole, program: &str) -> Option<String> {
    let ran =
        Command::new(python()).args(["-c", program]).current_dir(hub.rig.dir()).output().unwrap();
    let err = String::from_utf8_lossy(&ran.stderr).into_owned();
    if err.contains("ModuleNotFoundError") {
        return None;
    }
    assert!(ran.status.success(), "{err}");
    Some(String::from_utf8(ran.stdout).unwrap())
}

/// Three good elements, one that fails twice, and one whose result does not fit into a page.
fn sweep() -> Whole {
    let hub = Whole::new();
    let line = "test {2} != 3 || exit 7; \
        printf '{\"loss\": 0.%s, \"n\": %s, \"note\": \"=1+1\"}' {2} {2} > $LABORO_RESULT; \
        test {2} != 4 || { printf '{\"loss\": 4, \"big\": \"'; head -c 30000 /dev/zero | tr '\\0' x; printf '\"}'; } > $LABORO_RESULT";
    hub.run(&[
        "submit",
        "--wait",
        "--attempts",
        "2",
        "--name=sweep",
        "--",
        line,
        ":::",
        "a b",
        "=x",
        ":::",
        "1",
        "2",
        "3",
        "4",
    ])
    .expect(1);
    hub
}

#[test]
fn values_keep_the_names_that_they_were_submitted_with() {
    let hub = Whole::new();
    hub.rig.write("sheet.csv", "sample,name1,job\ns1,a.fq,x\n");
    let words = ["--header", ":", "-a", "sheet.csv", "--", "echo", "{sample}", "{name1}", "{job}"];
    hub.run(&[&["submit", "--wait"], &words[..]].concat()).expect(0);
    let head = |words: &[&str]| hub.run(words).expect(0).out().lines().next().unwrap().to_owned();
    assert!(head(&["export"]).ends_with(",message,sample,name1,value_job"));
    assert!(head(&["export", "--columns=a,b,c"]).ends_with(",message,a,b,c"));
    let task = hub.run(&["tasks", "--json", "last"]).expect(0).events();
    assert_eq!(task[0]["label"], "sample=s1 name1=a.fq job=x");
    // The same of a run here, and of one without names for all its lists.
    hub.run(&[&["run", "-q"], &words[..]].concat()).expect(0);
    assert!(head(&["export", "--run"]).ends_with(",message,sample,name1,value_job"));
    hub.run(&["submit", "--wait", "--", "echo", ":::", "v"]).expect(0);
    assert!(head(&["export", "--hub"]).ends_with(",message,value_1"));
}

#[test]
fn a_database_has_a_row_per_attempt_with_named_values_and_parts_of_results() {
    let hub = sweep();
    hub.run(&["export", "-o", "t.sqlite", "--columns=model,seed"]).expect(0).says("job 1: 10 rows");
    let program = r#"
import sqlite3
db = sqlite3.connect("t.sqlite")
print(db.execute("pragma integrity_check").fetchall())
print(db.execute("select count(*), typeof(job), typeof(wall_s) from attempts").fetchall())
print(db.execute("select model, seed, attempt, exit_code, result_loss, result_n, length(result_big) from attempts "
    "where model = 'a b' order by task, attempt").fetchall())
print(db.execute("select distinct result_note from attempts where seed < 3").fetchall())
"#;
    let out = read_by_python(&hub, program).unwrap();
    let expected = "[('ok',)]\n[(10, 'integer', 'real')]\n\
        [('a b', '1', 1, 0, 0.1, 1, None), ('a b', '2', 1, 0, 0.2, 2, None), ('a b', '3', 1, 7, None, None, None), \
        ('a b', '3', 2, 7, None, None, None), ('a b', '4', 1, 0, 4.0, None, 30000)]\n[('=1+1',)]\n";
    assert_eq!(out, expected);
    hub.run(&["export", "--columns=a,b,c"]).expect(2).says("2 values");
    hub.run(&["export", "--columns=job"]).expect(2).says("another column");
    hub.run(&["export", "--format=sqlite"]).expect(2).says("-o FILE.sqlite");
    let csv = hub.run(&["export", "--columns=model,seed"]).expect(0).out();
    assert!(
        csv.lines()
            .next()
            .unwrap()
            .ends_with("message,model,seed,result,result_loss,result_n,result_note,result_big"),
        "{csv}"
    );
    assert!(csv.contains("\"'=1+1\"") && csv.contains("\"'=x\""), "no cell is a formula");
    let rows = hub.run(&["export", "1/1", "--format=jsonl"]).expect(0).events();
    assert_eq!(rows[0]["result"]["loss"], 0.1);
    assert!(
        rows[0]["peak_memory_bytes"].is_null(),
        "a shell is too small to be measured: {rows:?}"
    );
}

#[test]
fn parquet_is_read_by_arrow() {
    let hub = sweep();
    hub.run(&["export", "-o", "t.parquet", "--columns=model,seed"]).expect(0);
    let program = r#"
import pyarrow.parquet as pq
t = pq.read_table("t.parquet")
print(t.num_rows, t.schema.field("job").type, t.schema.field("wall_s").type, t.schema.field("model").type)
rows = [r for r in t.to_pylist() if r["model"] == "a b"]
print([(r["seed"], r["attempt"], r["exit_code"], r["result_loss"], r["result_n"]) for r in rows])
print(len(rows[-1]["result_big"]), rows[0]["message"])
"#;
    let Some(out) = read_by_python(&hub, program) else {
        return not_tried("Python has no pyarrow, which would read a Parquet file");
    };
    let expected = "10 int64 double string\n[('1', 1, 0, 0.1, 1), ('2', 1, 0, 0.2, 2), ('3', 1, 7, None, None), \
        ('3', 2, 7, None, None), ('4', 1, 0, 4.0, None)]\n30000 None\n";
    assert_eq!(out, expected);
}

#[test]
fn a_database_of_many_rows_is_sound_and_an_empty_one_too() {
    let hub = Whole::new();
    hub.run(&["submit", "--hold", "--array", "1-30000", "--", "true", "{}"]).expect(0);
    hub.run(&["export", "-o", "t.db"]).expect(0).says("30000 rows");
    hub.run(&["export", "1/failed", "-o", "none.db"]).expect(0).says("0 rows");
    let program = r#"
import sqlite3
for name in ["t.db", "none.db"]:
    db = sqlite3.connect(name)
    print(db.execute("pragma integrity_check").fetchall(), db.execute("select count(*), sum(task), max(rowid) from attempts").fetchall())
"#;
    let expected = "[('ok',)] [(30000, 450015000, 30000)]\n[('ok',)] [(0, None, None)]\n";
    assert_eq!(read_by_python(&hub, program).unwrap(), expected);
}
