//! What the pictures promise.

use std::path::Path;

use crate::{Plan, parse_flow};

fn flow(text: &str) -> Plan {
    parse_flow("flow.toml", text, Path::new("")).unwrap_or_else(|error| panic!("{error}"))
}

/// `name[*count]: predecessors` a line.
fn plan(lines: &str) -> Plan {
    let task = |line: &str| {
        let (name, after) = line.split_once(':').unwrap();
        let (name, foreach) = match name.trim().split_once('*') {
            Some((name, count)) => (name, format!("foreach = \"1-{count}\"\n")),
            None => (name.trim(), String::new()),
        };
        let after: Vec<String> =
            after.split_whitespace().map(|name| name.replace('~', "each:")).collect();
        format!("[[task]]\nname = {name:?}\n{foreach}command = \"x\"\nafter = {after:?}\n")
    };
    flow(&lines.lines().filter(|line| !line.trim().is_empty()).map(task).collect::<String>())
}

const STUDY: &str = "
    fetch:
    build:
    clean*12: fetch
    train*12: ~clean build
    score*12: ~train
    figures: score fetch
    tables: score
    report: figures tables build
";

#[test]
fn text_shows_levels_and_what_each_waits_for() {
    assert_eq!(
        plan(STUDY).graph().text(),
        "\
1  fetch
   build
2  clean [12]  <- fetch
3  train [12]  <- each clean, build
4  score [12]  <- each train
5  figures     <- score, fetch
   tables      <- score
6  report      <- figures, tables, build
"
    );
}

#[test]
fn text_keeps_to_eighty_columns() {
    let long =
        |i: usize| format!("a-task-with-quite-a-long-name-number-{i:03}-{}", "x".repeat(i % 30));
    let mut lines: String = (0..40).map(|i| format!("{}:\n", long(i))).collect();
    lines +=
        &format!("end: {}\nlast: {}\n", (0..40).map(long).collect::<Vec<_>>().join(" "), long(29));
    let text = plan(&lines).graph().text();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("40 others"), "{text}");
}

#[test]
fn dot_has_every_node_and_edge_with_its_text_escaped() {
    let plan = flow(
        "[[task]]\nname = 'a \"b\" \\'\ncommand = 'x'\n[[task]]\nname = 'c'\nforeach = '1-3'\ncommand = 'x'\nafter = ['a \"b\" \\']\n",
    );
    assert_eq!(
        plan.graph().dot(),
        "digraph plan {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"monospace\"];\n  \
         n0 [label=\"a \\\"b\\\" \\\\\"];\n  n1 [label=\"c\\n3 tasks\", peripheries=2];\n  n0 -> n1;\n}\n"
    );
}

#[test]
fn svg_escapes_names_and_runs_nothing() {
    let plan = flow("[[task]]\nname = '<script>alert(1)</script>&\"'\ncommand = 'x'\n");
    let svg = plan.graph().svg();
    assert!(!svg.contains("<script"), "{svg}");
    assert!(svg.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;"), "{svg}");
    assert!(svg.contains("prefers-color-scheme:dark"));
}

#[test]
fn boxes_of_a_level_never_overlap() {
    let wide: String = (0..30)
        .map(|i| {
            format!(
                "t{i}: {}\n",
                (0..i)
                    .filter(|j| (i * 7 + j * 3) % 5 == 0)
                    .map(|j| format!("t{j}"))
                    .collect::<Vec<_>>()
                    .join(" ")
            )
        })
        .collect();
    let graph = plan(&wide).graph();
    let size = super::layout::Size { width: 50.0, height: 32.0 };
    let layout = super::layout::layout(&graph, &vec![size; graph.nodes.len()]);
    for members in &graph.levels {
        let mut heights: Vec<f64> = members.iter().map(|node| layout.places[*node].1).collect();
        heights.sort_by(f64::total_cmp);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= 32.0), "{heights:?}");
    }
    assert!(layout.routes.iter().all(|route| route.points.is_sorted_by(|a, b| a.0 <= b.0)));
}

#[test]
fn an_order_without_crossings_is_found_where_there_is_one() {
    // Written so that plan order alone would cross every pair.
    let graph = plan("a:\nb:\nc:\nz: c\ny: b\nx: a\n").graph();
    let size = super::layout::Size { width: 50.0, height: 32.0 };
    let layout = super::layout::layout(&graph, &[size; 6]);
    let height = |node: usize| layout.places[node].1;
    assert_eq!((height(0), height(1), height(2)), (height(5), height(4), height(3)));
}

#[test]
fn a_large_graph_is_folded_by_level_and_a_deep_one_by_bands() {
    let mut lines: String = (0..1000).map(|i| format!("a{i}:\n")).collect();
    lines += "mid*500: a0 a999\n";
    lines += &(0..400).map(|i| format!("z{i}: mid\n")).collect::<String>();
    let text = plan(&lines).graph().text();
    assert_eq!(
        text,
        "1  level 1 [1000]\n2  mid [500]       <- level 1\n3  level 3 [400]   <- mid\n"
    );
    let line = |i: usize| {
        format!(
            "{{\"name\":\"t{i}\",\"command\":\"x\",\"after\":[{}]}}\n",
            if i > 0 { format!("\"t{}\"", i - 1) } else { String::new() }
        )
    };
    let deep: String = (0..50_000).map(line).collect();
    let plan = crate::parse_jsonl("t", Path::new(""), deep.as_bytes()).unwrap();
    let graph = plan.graph();
    assert!(graph.nodes.len() <= 60);
    assert!(graph.svg().len() < 60_000);
    assert!(graph.text().starts_with("1   levels 1-834 [834]\n"), "{}", graph.text());
}
