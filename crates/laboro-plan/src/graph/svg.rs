//! The graph as an SVG of its own: no scripts, no fonts to load, light or dark as the reader's screen is.

use std::fmt::Write;

use super::layout::{Layout, Route, Size, layout};
use super::{Graph, Kind, Link, Vertex, columns, shortened};

const MARGIN: f64 = 20.0;
const LETTER_WIDTH: f64 = 7.9;
const LABEL_COLUMNS_MAX: usize = 30;
/// Room for the arrow's tip between an edge's end and its box.
const TIP: f64 = 7.0;

// Colours are spelled out twice: variables would be shorter, but not every viewer knows them.
const STYLE: &str = "\
text{font:13px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1f2933;text-anchor:middle}\
.note{font-size:11px;fill:#667482}\
.paper{fill:#fff}\
.task,.array,.fold{stroke-width:1.2}\
.task{fill:#f3f6f9;stroke:#b9c4cf}\
.array{fill:#e3effb;stroke:#6ea3d8}\
.fold{fill:#f6eede;stroke:#c9a45c}\
.edge,.each{fill:none;stroke:#9aa7b4;stroke-width:1.3}\
.each{stroke:#6ea3d8;stroke-dasharray:5 3}\
.tip{fill:#9aa7b4}\
.each-tip{fill:#6ea3d8}\
@media(prefers-color-scheme:dark){\
text{fill:#e4e9ee}\
.note{fill:#97a4b1}\
.paper{fill:#14181d}\
.task{fill:#222931;stroke:#485562}\
.array{fill:#1b3147;stroke:#4d86bd}\
.fold{fill:#332b1c;stroke:#8f7440}\
.edge{stroke:#66737f}\
.each{stroke:#4d86bd}\
.tip{fill:#66737f}\
.each-tip{fill:#4d86bd}}";

impl Graph {
    /// A drawing for a browser.
    pub fn svg(&self) -> String {
        let sizes: Vec<Size> = self.nodes.iter().map(size).collect();
        let layout = layout(self, &sizes);
        let (width, height) = (layout.width + 2.0 * MARGIN, layout.height + 2.0 * MARGIN);
        let mut svg = String::new();
        let mut put = |piece: std::fmt::Arguments<'_>| {
            svg.write_fmt(piece).expect("a string takes whatever is written");
        };
        put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>dependency graph</title>\n<style>{STYLE}</style>\n"
        ));
        put(format_args!("<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"));
        put(format_args!("<g transform=\"translate({MARGIN} {MARGIN})\">\n"));
        layout.routes.iter().for_each(|route| put(format_args!("{}", drawn_edge(route))));
        for (number, node) in self.nodes.iter().enumerate() {
            put(format_args!("{}", drawn_node(node, sizes[number], &layout, number)));
        }
        put(format_args!("</g>\n</svg>\n"));
        svg
    }
}

fn label(node: &Vertex) -> String {
    shortened(&node.name, LABEL_COLUMNS_MAX)
}

fn size(node: &Vertex) -> Size {
    let note = node.kind.note().unwrap_or_default();
    let letters = columns(&label(node)) as f64 * LETTER_WIDTH;
    let width = letters.max(columns(&note) as f64 * LETTER_WIDTH * 0.85) + 26.0;
    Size { width: width.max(54.0), height: if note.is_empty() { 32.0 } else { 46.0 } }
}

fn drawn_edge(route: &Route) -> String {
    let (class, tip_class) = match route.link {
        Link::Whole => ("edge", "tip"),
        Link::Each => ("each", "each-tip"),
    };
    let last = route.points.len() - 1;
    let mut path = String::new();
    let mut at = route.points[0];
    for (number, point) in route.points.iter().enumerate() {
        let (x, y) = if number == last { (point.0 - TIP + 1.0, point.1) } else { *point };
        path += &match number {
            0 => format!("M{x:.1} {y:.1}"),
            // Between columns a curve, past a column a straight line.
            odd if odd % 2 == 1 => {
                let middle = (at.0 + x) / 2.0;
                format!("C{middle:.1} {:.1} {middle:.1} {y:.1} {x:.1} {y:.1}", at.1)
            }
            _ => format!("L{x:.1} {y:.1}"),
        };
        at = (x, y);
    }
    let (x, y) = route.points[last];
    let (back, up, down) = (x - TIP - 1.0, y - 4.0, y + 4.0);
    format!(
        "<path class=\"{class}\" d=\"{path}\"/><path class=\"{tip_class}\" d=\"M{x:.1} {y:.1}L{back:.1} {up:.1}L{back:.1} {down:.1}Z\"/>\n"
    )
}

fn drawn_node(node: &Vertex, size: Size, layout: &Layout, number: usize) -> String {
    let (x, middle) = layout.places[number];
    let y = middle - size.height / 2.0;
    let class = match node.kind {
        Kind::Task => "task",
        Kind::Array { .. } => "array",
        Kind::Folded { .. } => "fold",
    };
    let frame = |shift: f64| {
        let (x, y, width, height) = (x + shift, y + shift, size.width, size.height);
        format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"7\"/>"
        )
    };
    let mut drawn = format!("<g><title>{}", escaped(&node.name));
    if let Some(note) = node.kind.note() {
        drawn += &format!(": {note}");
    }
    drawn += "</title>";
    // Several tasks look like a pile of cards.
    if node.kind != Kind::Task {
        drawn += &frame(4.0);
    }
    drawn += &frame(0.0);
    let center = x + size.width / 2.0;
    let baseline = if node.kind.note().is_some() { middle - 3.0 } else { middle + 4.5 };
    drawn +=
        &format!("<text x=\"{center:.1}\" y=\"{baseline:.1}\">{}</text>", escaped(&label(node)));
    if let Some(note) = node.kind.note() {
        let below = middle + 13.0;
        drawn += &format!("<text class=\"note\" x=\"{center:.1}\" y=\"{below:.1}\">{note}</text>");
    }
    drawn + "</g>\n"
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            // XML knows no way to write these at all.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
