//! Where boxes and edges go: levels from left to right, an order within each level that avoids crossings
//! (barycenter sweeps, the best one kept), and heights that make edges straight. Knows no SVG.

use super::{Graph, Link};

/// What the layout must know of a box.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub width: f64,
    pub height: f64,
}

#[derive(Debug)]
pub(super) struct Layout {
    /// The middle of the left side of each node's box.
    pub places: Vec<(f64, f64)>,
    pub routes: Vec<Route>,
    pub width: f64,
    pub height: f64,
}

/// An edge as the points it passes, in pairs: into a column at its left, out of it at its right.
#[derive(Debug)]
pub(super) struct Route {
    pub points: Vec<(f64, f64)>,
    pub link: Link,
}

const COLUMN_GAP: f64 = 56.0;
const BOX_GAP: f64 = 18.0;
/// Between two edges that pass a column side by side.
const BEND_GAP: f64 = 8.0;
/// An edge that passes a column needs less room than a box.
const BEND_HEIGHT: f64 = 6.0;
const SWEEPS: usize = 12;

/// A node of the graph, or a place where a long edge passes a level.
struct Spot {
    level: usize,
    height: f64,
    before: Vec<usize>,
    after: Vec<usize>,
    y: f64,
}

pub(super) fn layout(graph: &Graph, sizes: &[Size]) -> Layout {
    let mut spots: Vec<Spot> = (graph.nodes.iter().zip(sizes))
        .map(|(node, size)| Spot::new(node.level, size.height))
        .collect();
    let paths: Vec<Vec<usize>> = graph
        .edges
        .iter()
        .map(|edge| {
            let mut path = vec![edge.from];
            for level in graph.nodes[edge.from].level + 1..graph.nodes[edge.to].level {
                path.push(spots.len());
                spots.push(Spot::new(level, BEND_HEIGHT));
            }
            path.push(edge.to);
            for pair in path.windows(2) {
                spots[pair[0]].after.push(pair[1]);
                spots[pair[1]].before.push(pair[0]);
            }
            path
        })
        .collect();
    let mut columns = vec![Vec::new(); graph.levels.len()];
    for (number, spot) in spots.iter().enumerate() {
        columns[spot.level].push(number);
    }
    order(&spots, &mut columns);
    set_heights(&mut spots, &columns);
    place(graph, sizes, &spots, &paths)
}

impl Spot {
    fn new(level: usize, height: f64) -> Spot {
        Spot { level, height, before: Vec::new(), after: Vec::new(), y: 0.0 }
    }
}

/// Sorts each column by the mean place of its neighbours, forwards and backwards in turn.
fn order(spots: &[Spot], columns: &mut Vec<Vec<usize>>) {
    let mut best = (crossings(spots, columns), columns.clone());
    for sweep in 0..SWEEPS {
        let forwards = sweep % 2 == 0;
        let mut rank = ranks(spots.len(), columns);
        let count = columns.len();
        for step in 0..count {
            let column = &mut columns[if forwards { step } else { count - 1 - step }];
            let mean = |spot: usize| {
                let near = if forwards { &spots[spot].before } else { &spots[spot].after };
                match near.len() {
                    0 => rank[spot],
                    count => near.iter().map(|other| rank[*other]).sum::<f64>() / count as f64,
                }
            };
            let mut keyed: Vec<(f64, usize)> =
                column.iter().map(|spot| (mean(*spot), *spot)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            *column = keyed.into_iter().map(|(_, spot)| spot).collect();
            for (place, spot) in column.iter().enumerate() {
                rank[*spot] = place as f64;
            }
        }
        let found = crossings(spots, columns);
        if found < best.0 {
            best = (found, columns.clone());
        }
    }
    *columns = best.1;
}

fn ranks(count: usize, columns: &[Vec<usize>]) -> Vec<f64> {
    let mut rank = vec![0.0; count];
    for column in columns {
        for (place, spot) in column.iter().enumerate() {
            rank[*spot] = place as f64;
        }
    }
    rank
}

/// Pairs of edges between neighbouring columns that cross: inversions, counted with a Fenwick tree.
fn crossings(spots: &[Spot], columns: &[Vec<usize>]) -> usize {
    let rank = ranks(spots.len(), columns);
    let mut crossings = 0;
    for pair in columns.windows(2) {
        let mut tree = vec![0_usize; pair[1].len() + 1];
        let mut seen = 0;
        for spot in &pair[0] {
            let mut ends: Vec<usize> =
                spots[*spot].after.iter().map(|to| rank[*to] as usize).collect();
            ends.sort_unstable();
            for end in &ends {
                let mut at = end + 1;
                let mut not_beyond = 0;
                while at > 0 {
                    not_beyond += tree[at];
                    at &= at - 1;
                }
                crossings += seen - not_beyond;
            }
            for end in &ends {
                let mut at = end + 1;
                while at < tree.len() {
                    tree[at] += 1;
                    at += at & at.wrapping_neg();
                }
                seen += 1;
            }
        }
    }
    crossings
}

/// Draws each spot to the height of its neighbours, as far as the order and the gaps allow.
fn set_heights(spots: &mut [Spot], columns: &[Vec<usize>]) {
    for column in columns {
        let offsets = offsets(spots, column);
        let middle = offsets.last().copied().unwrap_or(0.0) / 2.0;
        for (spot, offset) in column.iter().zip(offsets) {
            spots[*spot].y = offset - middle;
        }
    }
    for sweep in 0..SWEEPS * 2 {
        let forwards = sweep % 2 == 0;
        for step in 0..columns.len() {
            let column = &columns[if forwards { step } else { columns.len() - 1 - step }];
            let wanted: Vec<f64> = column.iter().map(|spot| wish(spots, *spot, forwards)).collect();
            place_column(spots, column, &wanted);
        }
    }
    // The last word belongs to both sides at once.
    for column in columns {
        let wanted: Vec<f64> = column
            .iter()
            .map(|spot| (wish(spots, *spot, true) + wish(spots, *spot, false)) / 2.0)
            .collect();
        place_column(spots, column, &wanted);
    }
}

fn wish(spots: &[Spot], spot: usize, forwards: bool) -> f64 {
    let near = if forwards { &spots[spot].before } else { &spots[spot].after };
    match near.len() {
        0 => spots[spot].y,
        count => near.iter().map(|other| spots[*other].y).sum::<f64>() / count as f64,
    }
}

/// The heights nearest to the wishes that keep order and gaps: isotonic regression by pooling neighbours.
fn place_column(spots: &mut [Spot], column: &[usize], wanted: &[f64]) {
    let offsets = offsets(spots, column);
    // Blocks of (mean, size) whose means only grow.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (want, offset) in wanted.iter().zip(&offsets) {
        let mut block = (want - offset, 1);
        while let Some(last) = blocks.last().filter(|last| last.0 > block.0) {
            let size = last.1 + block.1;
            let mean = (last.0 * last.1 as f64 + block.0 * block.1 as f64) / size as f64;
            block = (mean, size);
            blocks.pop();
        }
        blocks.push(block);
    }
    let bases = blocks.iter().flat_map(|(mean, size)| std::iter::repeat_n(*mean, *size));
    for ((spot, base), offset) in column.iter().zip(bases).zip(&offsets) {
        spots[*spot].y = base + offset;
    }
}

/// How far below the first each spot of a column must at least be.
fn offsets(spots: &[Spot], column: &[usize]) -> Vec<f64> {
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(column.len());
    for (place, spot) in column.iter().enumerate() {
        if place > 0 {
            let (above, below) = (spots[column[place - 1]].height, spots[*spot].height);
            let gap = if above.max(below) > BEND_HEIGHT { BOX_GAP } else { BEND_GAP };
            offset += (above + below) / 2.0 + gap;
        }
        offsets.push(offset);
    }
    offsets
}

fn place(graph: &Graph, sizes: &[Size], spots: &[Spot], paths: &[Vec<usize>]) -> Layout {
    let mut left = Vec::with_capacity(graph.levels.len());
    let mut widths = Vec::with_capacity(graph.levels.len());
    let mut x = 0.0;
    for members in &graph.levels {
        let width = members.iter().map(|node| sizes[*node].width).fold(0.0, f64::max);
        left.push(x);
        widths.push(width);
        x += width + COLUMN_GAP;
    }
    let top = spots.iter().map(|spot| spot.y - spot.height / 2.0).fold(f64::INFINITY, f64::min);
    let bottom =
        spots.iter().map(|spot| spot.y + spot.height / 2.0).fold(f64::NEG_INFINITY, f64::max);
    let y = |spot: usize| spots[spot].y - top;
    let node_x = |node: usize| {
        let level = graph.nodes[node].level;
        left[level] + (widths[level] - sizes[node].width) / 2.0
    };
    let route = |(path, edge): (&Vec<usize>, &super::Edge)| {
        let mut points = vec![(node_x(edge.from) + sizes[edge.from].width, y(edge.from))];
        for bend in &path[1..path.len() - 1] {
            let level = spots[*bend].level;
            points.extend([(left[level], y(*bend)), (left[level] + widths[level], y(*bend))]);
        }
        points.push((node_x(edge.to), y(edge.to)));
        Route { points, link: edge.link }
    };
    Layout {
        places: (0..graph.nodes.len()).map(|node| (node_x(node), y(node))).collect(),
        routes: paths.iter().zip(&graph.edges).map(route).collect(),
        width: (x - COLUMN_GAP).max(0.0),
        height: if spots.is_empty() { 0.0 } else { bottom - top },
    }
}
