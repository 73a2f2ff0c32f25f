//! Would somebody wait for itself? Among new tasks by counting. A task that is there and gets predecessors is
//! judged by levels (see `ledger::order`), as in "A New Approach to Incremental Cycle Detection" by Bender,
//! Fineman, Gilbert and Tarjan: a short look back from the predecessor, then what comes after the task is raised
//! above it. Costs the square root of the graph an edge at most, and mostly nothing. May be done in slices, while
//! nothing else makes edges or forgets tasks.

use crate::ledger::{Ledger, LedgerWriter, TaskHandle};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::ops::ControlFlow;

/// Between two nodes of a submit.
pub(super) struct Arrow {
    pub(super) pred: u32,
    pub(super) succ: u32,
}

/// A node that stands on a cycle, if one does.
pub(super) fn among(nodes: usize, arrows: &[Arrow]) -> Option<u32> {
    let mut waits = vec![0u32; nodes];
    let mut starts = vec![0u32; nodes + 1];
    for arrow in arrows {
        waits[arrow.succ as usize] += 1;
        starts[arrow.pred as usize + 1] += 1;
    }
    for at in 0..nodes {
        starts[at + 1] += starts[at];
    }
    let mut succs = vec![0u32; arrows.len()];
    let mut fill = starts.clone();
    for arrow in arrows {
        let place = &mut fill[arrow.pred as usize];
        succs[*place as usize] = arrow.succ;
        *place += 1;
    }
    let mut free: Vec<u32> = (0..nodes as u32).filter(|&node| waits[node as usize] == 0).collect();
    while let Some(node) = free.pop() {
        let (from, to) = (starts[node as usize] as usize, starts[node as usize + 1] as usize);
        for &succ in &succs[from..to] {
            waits[succ as usize] -= 1;
            if waits[succ as usize] == 0 {
                free.push(succ);
            }
        }
    }
    (0..nodes as u32).find(|&node| waits[node as usize] > 0)
}

/// How many edges a look back follows. More of them cost more each time, fewer raise more tasks; for a million
/// random edges 8 to 24 are the best. Few where mistakes are looked for: tests have small graphs.
const LOOK_BACK: usize = if cfg!(debug_assertions) { 2 } else { 16 };

/// Few enough to be looked through one by one.
type Ancestors = SmallVec<[Node; 16]>;

/// A task or an array: one that is there, by the handle of its node, or one of the submit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::hub) enum Node {
    There(TaskHandle),
    New(u32),
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::hub) enum Verdict {
    Acyclic,
    /// This node would wait for itself.
    Cycle(Node),
    /// A cycle of nodes on which an array stands: perhaps it is none of tasks.
    Unclear,
}

/// A check under way.
#[derive(Debug)]
pub(in crate::hub) struct Check {
    planned: Planned,
    /// Edges to tasks that are there; those before `next` are part of the plan.
    edges: Vec<(Node, Node)>,
    next: usize,
    rise: Option<Rise>,
    /// An array was met on the way.
    meets_array: bool,
}

/// Edges that do not exist yet.
#[derive(Debug, Default)]
struct Planned {
    after: HashMap<Node, SmallVec<[Node; 2]>, FixedState>,
    before: HashMap<Node, SmallVec<[Node; 2]>, FixedState>,
    /// Levels of new nodes.
    levels: Vec<u32>,
}

/// Nodes are being raised to a level.
#[derive(Debug)]
struct Rise {
    level: u32,
    open: Vec<Node>,
    /// Who is among these, and comes after the task, closes the cycle.
    ancestors: Ancestors,
    closes: bool,
}

impl Check {
    /// `to_new` are the edges to new nodes, which close no cycle by themselves.
    pub(in crate::hub) fn new(
        ledger: &Ledger,
        new_nodes: usize,
        to_new: impl IntoIterator<Item = (Node, Node)>,
        edges: Vec<(Node, Node)>,
    ) -> Check {
        let mut planned = Planned {
            after: HashMap::with_capacity_and_hasher(edges.len(), FixedState::default()),
            before: HashMap::with_capacity_and_hasher(edges.len(), FixedState::default()),
            levels: vec![0; new_nodes],
        };
        for (pred, succ) in to_new {
            planned.add(pred, succ);
            planned.raise_new(succ, planned.level(ledger, pred));
        }
        Check { planned, edges, next: 0, rise: None, meets_array: false }
    }

    /// Goes on for about so many visits; `None`: there is more to do.
    pub(in crate::hub) fn run(
        &mut self,
        writer: &mut LedgerWriter,
        visits: &mut usize,
    ) -> Option<Verdict> {
        loop {
            if let Some(rise) = &mut self.rise {
                if !rise.run(writer, &mut self.planned, &mut self.meets_array, visits) {
                    return None;
                }
                let closes = rise.closes;
                self.rise = None;
                if closes {
                    return Some(self.found());
                }
                self.plan_edge();
            }
            let Some(&(pred, succ)) = self.edges.get(self.next) else {
                return Some(Verdict::Acyclic);
            };
            if *visits == 0 {
                return None;
            }
            *visits -= 1;
            match self.judge(writer, pred, succ, visits) {
                Judgement::Closes => return Some(self.found()),
                Judgement::Fits => self.plan_edge(),
                Judgement::Rise(rise) => self.rise = Some(rise),
            }
        }
    }

    fn found(&self) -> Verdict {
        match self.meets_array {
            true => Verdict::Unclear,
            false => Verdict::Cycle(self.edges[self.next].1),
        }
    }

    fn plan_edge(&mut self) {
        let (pred, succ) = self.edges[self.next];
        self.planned.add(pred, succ);
        self.next += 1;
    }

    fn judge(
        &mut self,
        writer: &mut LedgerWriter,
        pred: Node,
        succ: Node,
        visits: &mut usize,
    ) -> Judgement {
        let ledger = writer.read();
        for node in [pred, succ] {
            self.meets_array |= is_array(ledger, node);
        }
        if pred == succ {
            return Judgement::Closes;
        }
        if !self.planned.has_before(ledger, pred) {
            // It comes after nothing, so the lowest level suits it.
            if let Node::There(node) = pred {
                writer.set_level(node, 0);
            }
            return Judgement::Fits;
        }
        let level = self.planned.level(ledger, pred);
        if level < self.planned.level(ledger, succ) {
            return Judgement::Fits;
        }
        let mut ancestors = Ancestors::new();
        let mut above = level;
        if self.planned.has_after(ledger, succ) {
            let mut look = Look { planned: &self.planned, ledger, level, ancestors, edges: 0 };
            let met = look.back(pred, succ, &mut self.meets_array);
            *visits = visits.saturating_sub(look.edges);
            ancestors = look.ancestors;
            match met {
                Met::Successor => return Judgement::Closes,
                Met::All => {}
                Met::TooMany => {
                    // Too many to know whether it is one of them. Above all of them it is none.
                    above += 1;
                    ancestors.clear();
                }
            }
        }
        if above <= self.planned.level(ledger, succ) {
            return Judgement::Fits;
        }
        if ancestors.is_empty() {
            ancestors.push(pred);
        }
        self.planned.set_level(writer, succ, above);
        Judgement::Rise(Rise { level: above, open: vec![succ], ancestors, closes: false })
    }
}

enum Judgement {
    Closes,
    Fits,
    /// It fits if what is raised now does not meet an ancestor.
    Rise(Rise),
}

enum Met {
    Successor,
    All,
    TooMany,
}

/// A look at what comes before a node on its own level.
struct Look<'a> {
    planned: &'a Planned,
    ledger: &'a Ledger,
    level: u32,
    ancestors: Ancestors,
    edges: usize,
}

impl Look<'_> {
    fn back(&mut self, from: Node, succ: Node, meets_array: &mut bool) -> Met {
        self.ancestors.push(from);
        let mut met = Met::All;
        let mut next = 0;
        while let Some(&node) = self.ancestors.get(next) {
            next += 1;
            let flow = self.planned.each_before(self.ledger, node, |before, is_there| {
                self.edges += 1;
                if self.edges > LOOK_BACK {
                    met = Met::TooMany;
                    return ControlFlow::Break(());
                }
                // One that comes before from a lower level is met when it is raised.
                if self.planned.level(self.ledger, before) != self.level
                    || (is_there && is_done(self.ledger, before))
                {
                    return ControlFlow::Continue(());
                }
                *meets_array |= is_array(self.ledger, before);
                if before == succ {
                    met = Met::Successor;
                    return ControlFlow::Break(());
                }
                if !self.ancestors.contains(&before) {
                    self.ancestors.push(before);
                }
                ControlFlow::Continue(())
            });
            if flow.is_break() {
                break;
            }
        }
        met
    }
}

impl Rise {
    /// Whether it is over. Also what would close a cycle is raised to its end: the order must hold.
    fn run(
        &mut self,
        writer: &mut LedgerWriter,
        planned: &mut Planned,
        meets_array: &mut bool,
        visits: &mut usize,
    ) -> bool {
        let mut lower = Vec::new();
        while let Some(node) = self.open.pop() {
            if *visits == 0 {
                self.open.push(node);
                return false;
            }
            let ledger = writer.read();
            let _ = planned.each_after(ledger, node, |after, is_there| {
                *visits = visits.saturating_sub(1);
                let is_lower = planned.level(ledger, after) < self.level;
                let is_ancestor = self.ancestors.contains(&after);
                if (is_lower || is_ancestor) && !(is_there && is_done(ledger, after)) {
                    *meets_array |= is_array(ledger, after);
                    self.closes |= is_ancestor;
                    if is_lower {
                        lower.push(after);
                    }
                }
                ControlFlow::Continue(())
            });
            for after in lower.drain(..) {
                if planned.level(writer.read(), after) < self.level {
                    planned.set_level(writer, after, self.level);
                    self.open.push(after);
                }
            }
        }
        true
    }
}

impl Planned {
    fn add(&mut self, pred: Node, succ: Node) {
        self.after.entry(pred).or_default().push(succ);
        self.before.entry(succ).or_default().push(pred);
    }

    fn level(&self, ledger: &Ledger, node: Node) -> u32 {
        match node {
            Node::There(node) => ledger.level(node),
            Node::New(node) => self.levels[node as usize],
        }
    }

    fn set_level(&mut self, writer: &mut LedgerWriter, node: Node, level: u32) {
        match node {
            Node::There(node) => writer.set_level(node, level),
            Node::New(node) => self.levels[node as usize] = level,
        }
    }

    /// While no edge leads from a new node to one that is there.
    fn raise_new(&mut self, node: Node, level: u32) {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            let Node::New(at) = node else {
                unreachable!("only new nodes come after new ones yet")
            };
            if self.levels[at as usize] < level {
                self.levels[at as usize] = level;
                open.extend(self.after.get(&node).into_iter().flatten());
            }
        }
    }

    /// With whether the edge is there already: then it means nothing where its other end is done.
    fn each_after(
        &self,
        ledger: &Ledger,
        node: Node,
        mut visit: impl FnMut(Node, bool) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.after.get(&node).into_iter().flatten().try_for_each(|&after| visit(after, false))?;
        match node {
            Node::There(node) => ledger.nodes_after(node, |after| visit(Node::There(after), true)),
            Node::New(_) => ControlFlow::Continue(()),
        }
    }

    fn each_before(
        &self,
        ledger: &Ledger,
        node: Node,
        mut visit: impl FnMut(Node, bool) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.before
            .get(&node)
            .into_iter()
            .flatten()
            .try_for_each(|&before| visit(before, false))?;
        match node {
            Node::There(node) => {
                ledger.nodes_before(node, |before| visit(Node::There(before), true))
            }
            Node::New(_) => ControlFlow::Continue(()),
        }
    }

    fn has_before(&self, ledger: &Ledger, node: Node) -> bool {
        self.before.contains_key(&node)
            || matches!(node, Node::There(node) if ledger.waits_for_something(node))
    }

    fn has_after(&self, ledger: &Ledger, node: Node) -> bool {
        self.each_after(ledger, node, |_, _| ControlFlow::Break(())).is_break()
    }
}

fn is_array(ledger: &Ledger, node: Node) -> bool {
    match node {
        Node::There(node) => ledger.is_array_node(node),
        Node::New(_) => false,
    }
}

fn is_done(ledger: &Ledger, node: Node) -> bool {
    matches!(node, Node::There(node) if ledger.is_done_node(node))
}
