//! A plan's dependency graph as a picture: DOT, plain text and SVG. An array is one node with its count, and a
//! graph too large to look at is folded by level. Draws what it is given; whether that is valid is `validate`'s affair.

mod dot;
mod layout;
mod svg;
mod text;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashSet};

use crate::plan::{On, Part, Plan};
use crate::preview::counted;

/// Beyond this many boxes nobody finds anything in a picture.
const NODES_MAX: usize = 300;

/// Long edges are carried through every level they pass; past this many such places the picture is a felt.
const BENDS_MAX: usize = 4_000;

/// The parts of a plan and what comes after what, to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    nodes: Vec<Vertex>,
    edges: Vec<Edge>,
    /// Nodes of each level, in plan order.
    levels: Vec<Vec<usize>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Vertex {
    name: String,
    kind: Kind,
    level: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Task,
    Array {
        count: u64,
    },
    /// Everything of one or several levels, folded.
    Folded {
        parts: usize,
        count: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Edge {
    from: usize,
    to: usize,
    link: Link,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Link {
    Whole,
    /// Element by element.
    Each,
}

impl Plan {
    /// What would be drawn of it.
    pub fn graph(&self) -> Graph {
        let graph = Graph::whole(self);
        let bends: usize = graph.edges.iter().map(|edge| graph.span(edge) - 1).sum();
        if graph.nodes.len() > NODES_MAX || bends > BENDS_MAX { graph.folded() } else { graph }
    }
}

impl Graph {
    fn whole(plan: &Plan) -> Graph {
        let names = plan.names();
        let mut seen = HashSet::new();
        let mut edges = Vec::new();
        for (to, part) in plan.parts.iter().enumerate() {
            for after in part.after() {
                let link = if matches!(after.on, On::Each(_)) { Link::Each } else { Link::Whole };
                if let Some(from) = names.part(&after.on)
                    && seen.insert((from, to))
                {
                    edges.push(Edge { from, to, link });
                }
            }
        }
        let levels = levels(plan.parts.len(), &edges);
        // Only a cycle has edges that lead nowhere forward, and a valid plan has none.
        edges.retain(|edge| levels[edge.from] < levels[edge.to]);
        let node = |(part, level): (&Part, &usize)| Vertex {
            name: match part.name() {
                "" => "array".to_owned(),
                name => name.to_owned(),
            },
            kind: match part {
                Part::Task(_) => Kind::Task,
                Part::Array(array) => Kind::Array { count: array.count() },
            },
            level: *level,
        };
        Graph::new(plan.parts.iter().zip(&levels).map(node).collect(), edges)
    }

    fn new(nodes: Vec<Vertex>, edges: Vec<Edge>) -> Graph {
        let count = nodes.iter().map(|node| node.level + 1).max().unwrap_or(0);
        let mut levels = vec![Vec::new(); count];
        for (number, node) in nodes.iter().enumerate() {
            levels[node.level].push(number);
        }
        Graph { nodes, edges, levels }
    }

    fn span(&self, edge: &Edge) -> usize {
        self.nodes[edge.to].level - self.nodes[edge.from].level
    }

    /// One node a level, or a band of levels where there are too many of those too.
    fn folded(&self) -> Graph {
        // Few enough that edges between any two bands stay within bounds.
        let band = self.levels.len().div_ceil(60).max(1);
        let mut nodes = Vec::new();
        for (number, levels) in self.levels.chunks(band).enumerate() {
            let members: Vec<usize> = levels.iter().flatten().copied().collect();
            let (first, last) = (number * band + 1, number * band + levels.len());
            let name = match members.as_slice() {
                [one] => self.nodes[*one].name.clone(),
                _ if first == last => format!("level {first}"),
                _ => format!("levels {first}-{last}"),
            };
            let count = members
                .iter()
                .fold(0, |sum: u64, member| sum.saturating_add(self.nodes[*member].kind.count()));
            let kind = match members.as_slice() {
                [one] => self.nodes[*one].kind,
                _ => Kind::Folded { parts: members.len(), count },
            };
            nodes.push(Vertex { name, kind, level: number });
        }
        let between = |edge: &Edge| Edge {
            from: self.nodes[edge.from].level / band,
            to: self.nodes[edge.to].level / band,
            link: Link::Whole,
        };
        let edges: BTreeSet<Edge> =
            self.edges.iter().map(between).filter(|edge| edge.from < edge.to).collect();
        Graph::new(nodes, edges.into_iter().collect())
    }

    /// Who each node waits for, in plan order.
    fn predecessors(&self) -> Vec<Vec<(usize, Link)>> {
        let mut predecessors = vec![Vec::new(); self.nodes.len()];
        for edge in &self.edges {
            predecessors[edge.to].push((edge.from, edge.link));
        }
        predecessors
    }
}

impl Kind {
    fn count(self) -> u64 {
        match self {
            Kind::Task => 1,
            Kind::Array { count } | Kind::Folded { count, .. } => count,
        }
    }

    /// What stands under the name.
    fn note(self) -> Option<String> {
        match self {
            Kind::Task => None,
            Kind::Array { count } => Some(counted(count, "task")),
            Kind::Folded { parts, count } if parts as u64 == count => Some(counted(count, "task")),
            Kind::Folded { parts, count } => {
                Some(format!("{} in {parts} parts", counted(count, "task")))
            }
        }
    }
}

/// The longest way to each node. What is caught in a cycle stays at level 0.
fn levels(count: usize, edges: &[Edge]) -> Vec<usize> {
    let mut next = vec![Vec::new(); count];
    let mut open = vec![0_usize; count];
    for edge in edges {
        next[edge.from].push(edge.to);
        open[edge.to] += 1;
    }
    let mut levels = vec![0; count];
    let mut ready: Vec<usize> = (0..count).filter(|node| open[*node] == 0).collect();
    while let Some(node) = ready.pop() {
        for &to in &next[node] {
            levels[to] = levels[to].max(levels[node] + 1);
            open[to] -= 1;
            if open[to] == 0 {
                ready.push(to);
            }
        }
    }
    (0..count).for_each(|node| {
        if open[node] > 0 {
            levels[node] = 0;
        }
    });
    levels
}

/// At most `width` columns, with an ellipsis where something was left out.
fn shortened(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += char_columns(c);
        if used + 1 > width {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}

fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

/// East Asian letters and pictures take two columns; close enough for a box around a name.
fn char_columns(c: char) -> usize {
    match c as u32 {
        0x0300..=0x036F | 0x200B..=0x200F => 0,
        0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF => 2,
        0xFE30..=0xFE6F | 0xFF00..=0xFF60 | 0x1F300..=0x1FAFF | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}
