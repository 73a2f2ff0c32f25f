//! `sinfo`: groups as partitions, workers as nodes.

use super::Fault;
use super::columns::{by_letters, line};
use super::options::{Opt, Takes, WordsBegin, ignored, means, parse, refused};
use super::put;
use crate::hub_client::{Hub, WorkerPages};
use laboro_api::Worker;

use Takes::{Maybe, Nothing, Value};

const OPTIONS: [Opt; 17] = [
    means("Node", Some('N'), Nothing),
    means("format", Some('o'), Value),
    means("noheader", Some('h'), Nothing),
    means("partition", Some('p'), Value),
    means("summarize", Some('s'), Nothing),
    ignored("all", Some('a'), Nothing),
    ignored("exact", Some('e'), Nothing),
    ignored("long", Some('l'), Nothing),
    ignored("responding", Some('r'), Nothing),
    ignored("verbose", Some('v'), Nothing),
    ignored("local", None, Nothing),
    ignored("noconvert", None, Nothing),
    refused("Format", Some('O'), Value, "use --format with letters"),
    refused("states", Some('t'), Value, "all are listed with their state"),
    refused("nodes", Some('n'), Value, "use `laboro workers`"),
    refused("json", None, Maybe, "use `laboro workers --json`"),
    refused("iterate", Some('i'), Value, "use `laboro top`"),
];

const USUAL: &str = "%9P %.5a %.10l %.6D %.6t %N";
const SUMMARY: &str = "%9P %.5a %.10l %.16F %N";
const BY_NODE: &str = "%N %.6D %9P %6t";

pub(super) struct Partition {
    pub(super) name: String,
    pub(super) is_default: bool,
    pub(super) is_up: bool,
    pub(super) nodes: Vec<Node>,
}

#[derive(Clone)]
pub(super) struct Node {
    pub(super) name: String,
    state: &'static str,
    pub(super) slots: u32,
    used: u32,
}

pub(super) async fn partitions(hub: &Hub) -> Result<Vec<Partition>, Fault> {
    let mut found: Vec<Partition> = Vec::new();
    for group in hub.groups().await?.groups {
        let name = group.name.to_string();
        let is_default = name == hub.group();
        found.push(Partition { name, is_default, is_up: !group.paused, nodes: Vec::new() });
    }
    if !found.iter().any(|partition| partition.is_default) {
        let name = hub.group().to_owned();
        found.insert(0, Partition { name, is_default: true, is_up: true, nodes: Vec::new() });
    }
    let mut workers = WorkerPages::new(hub, None, None);
    while let Some(worker) = workers.next().await? {
        let group = worker.group.to_string();
        if let Some(partition) = found.iter_mut().find(|partition| partition.name == group) {
            partition.nodes.push(Node {
                name: worker.name.to_string(),
                state: state(&worker),
                slots: worker.slots,
                used: worker.slots_used,
            });
        }
    }
    Ok(found)
}

pub(super) fn state(worker: &Worker) -> &'static str {
    match (worker.connected, worker.draining, worker.slots_used) {
        (false, ..) => "down",
        (true, true, 0) => "drain",
        (true, true, _) => "drng",
        (true, false, 0) => "idle",
        (true, false, used) if used >= worker.slots => "alloc",
        (true, false, _) => "mix",
    }
}

pub(super) fn run(hub: &crate::args::hub::HubArgs, args: Vec<String>) -> Result<u8, Fault> {
    let typed = parse(&OPTIONS, WordsBegin::Anywhere, args)?;
    let usual = match (typed.has("Node"), typed.has("summarize")) {
        (true, _) => BY_NODE,
        (false, true) => SUMMARY,
        (false, false) => USUAL,
    };
    let known = |letter| head(letter).map(|head| (letter, head));
    let columns = by_letters(typed.value("format").unwrap_or(usual), known)?;
    // Nodes of one state are one line, where their state or name is shown.
    let by_state =
        columns.iter().any(|column| "tTN".contains(column.what.0)) && !typed.has("summarize");
    super::ask(hub, async |hub| {
        let mut text = String::new();
        if !typed.has("noheader") {
            text.push_str(&line(&columns, |(_, head)| (*head).to_owned()));
        }
        let only = typed.list("partition");
        for partition in partitions(hub).await? {
            if !only.is_empty() && !only.contains(&partition.name.as_str()) {
                continue;
            }
            for nodes in lines(&partition.nodes, by_state, typed.has("Node")) {
                text.push_str(&line(&columns, |(letter, _)| content(*letter, &partition, &nodes)));
            }
        }
        put(&text)?;
        Ok(0)
    })
}

fn lines(nodes: &[Node], by_state: bool, one_by_one: bool) -> Vec<Vec<Node>> {
    if one_by_one {
        return nodes.iter().map(|node| vec![node.clone()]).collect();
    }
    if !by_state || nodes.is_empty() {
        return vec![nodes.to_vec()];
    }
    let mut lines: Vec<Vec<Node>> = Vec::new();
    for node in nodes {
        match lines.iter_mut().find(|line| line[0].state == node.state) {
            Some(line) => line.push(node.clone()),
            None => lines.push(vec![node.clone()]),
        }
    }
    lines
}

fn head(letter: char) -> Option<&'static str> {
    Some(match letter {
        'P' | 'R' => "PARTITION",
        'a' => "AVAIL",
        'l' => "TIMELIMIT",
        'L' => "DEFAULTTIME",
        'D' => "NODES",
        't' | 'T' => "STATE",
        'N' => "NODELIST",
        'n' => "HOSTNAMES",
        'c' => "CPUS",
        'C' => "CPUS(A/I/O/T)",
        'F' => "NODES(A/I/O/T)",
        'G' => "GRES",
        'f' | 'b' => "AVAIL_FEATURES",
        'm' => "MEMORY",
        's' => "JOB_SIZE",
        'g' => "GROUPS",
        _ => return None,
    })
}

fn content(letter: char, partition: &Partition, nodes: &[Node]) -> String {
    let names = || nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(",");
    let count = |test: &dyn Fn(&Node) -> bool| nodes.iter().filter(|node| test(node)).count();
    match letter {
        'P' => format!("{}{}", partition.name, if partition.is_default { "*" } else { "" }),
        'R' => partition.name.clone(),
        'a' => (if partition.is_up { "up" } else { "down" }).to_owned(),
        'l' => "infinite".to_owned(),
        'L' => "n/a".to_owned(),
        'D' => nodes.len().to_string(),
        't' => nodes.first().map_or("n/a", |node| node.state).to_owned(),
        'T' => nodes.first().map_or("n/a", |node| long_state(node.state)).to_owned(),
        'N' | 'n' => names(),
        'c' => nodes.iter().map(|node| node.slots).max().unwrap_or(0).to_string(),
        'C' => {
            let all: u32 = nodes.iter().map(|node| node.slots).sum();
            let used: u32 = nodes.iter().map(|node| node.used).sum();
            format!("{used}/{}/0/{all}", all.saturating_sub(used))
        }
        'F' => {
            let idle = count(&|node| node.state == "idle");
            let down = count(&|node| ["down", "drain"].contains(&node.state));
            format!("{}/{idle}/{down}/{}", nodes.len() - idle - down, nodes.len())
        }
        's' => "1".to_owned(),
        'g' => "all".to_owned(),
        _ => "(null)".to_owned(),
    }
}

fn long_state(state: &str) -> &str {
    match state {
        "mix" => "mixed",
        "alloc" => "allocated",
        "drain" => "drained",
        "drng" => "draining",
        state => state,
    }
}
