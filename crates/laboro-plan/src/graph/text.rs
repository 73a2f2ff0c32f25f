//! The graph in 80 columns of plain text: one line a node, level by level, with what it waits for.

use super::{Graph, Kind, Link, columns, shortened};
use crate::mistake::visible;

const WIDTH: usize = 80;
const LABEL_WIDTH_MAX: usize = 40;

impl Graph {
    /// A drawing for a terminal.
    pub fn text(&self) -> String {
        let labels: Vec<String> = (0..self.nodes.len()).map(|number| self.label(number)).collect();
        let predecessors = self.predecessors();
        let label_width = labels.iter().map(|label| columns(label)).max().unwrap_or(0);
        let margin = self.levels.len().to_string().len() + 2;
        let mut text = String::new();
        for (level, members) in self.levels.iter().enumerate() {
            for (place, &number) in members.iter().enumerate() {
                let head = if place == 0 { (level + 1).to_string() } else { String::new() };
                let mut line = format!("{head:<margin$}{}", labels[number]);
                if !predecessors[number].is_empty() {
                    let gap = label_width - columns(&labels[number]) + 2;
                    line.extend(std::iter::repeat_n(' ', gap));
                    line += "<- ";
                    let room = WIDTH.saturating_sub(columns(&line)).max(10);
                    line += &self.waits(&predecessors[number], room);
                }
                text += line.trim_end();
                text.push('\n');
            }
        }
        text
    }

    fn label(&self, number: usize) -> String {
        let node = &self.nodes[number];
        let count = match node.kind {
            Kind::Task => return shortened(&visible(&node.name), LABEL_WIDTH_MAX),
            Kind::Array { count } | Kind::Folded { count, .. } => format!(" [{count}]"),
        };
        shortened(&visible(&node.name), LABEL_WIDTH_MAX - columns(&count)) + &count
    }

    /// As many names as there is room for, and how many more there are.
    fn waits(&self, predecessors: &[(usize, Link)], room: usize) -> String {
        let mut line = String::new();
        for (place, (number, link)) in predecessors.iter().enumerate() {
            let name = visible(&self.nodes[*number].name);
            let each = if *link == Link::Each { "each " } else { "" };
            let comma = if place == 0 { "" } else { ", " };
            let next = format!("{comma}{each}{name}");
            let left = predecessors.len() - place;
            let reserve = if left > 1 { format!(", {} more", left - 1).len() } else { 0 };
            if columns(&line) + columns(&next) + reserve > room {
                return match place {
                    0 if left == 1 => shortened(&next, room),
                    0 => format!("{left} others"),
                    _ => line + &format!(", {left} more"),
                };
            }
            line += &next;
        }
        line
    }
}
