//! The graph for Graphviz and everything that reads its language.

use std::fmt::Write;

use super::{Graph, Kind, Link};

impl Graph {
    /// For Graphviz.
    pub fn dot(&self) -> String {
        let mut dot = String::from(
            "digraph plan {\n  rankdir=LR;\n  node [shape=box, style=rounded, fontname=\"monospace\"];\n",
        );
        for (number, node) in self.nodes.iter().enumerate() {
            let mut label = escaped(&node.name);
            if let Some(note) = node.kind.note() {
                label += "\\n";
                label += &note;
            }
            let pile = if node.kind == Kind::Task { "" } else { ", peripheries=2" };
            write_line(&mut dot, format_args!("  n{number} [label=\"{label}\"{pile}];"));
        }
        for edge in &self.edges {
            let style = match edge.link {
                Link::Whole => "",
                Link::Each => " [style=dashed, label=\"each\"]",
            };
            write_line(&mut dot, format_args!("  n{} -> n{}{style};", edge.from, edge.to));
        }
        dot + "}\n"
    }
}

fn write_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a string takes whatever is written");
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
