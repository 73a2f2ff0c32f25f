// The tasks of a job and what waits for what, drawn, coloured by state, live. An array is one node; what is too large
// to look at is folded by level.

import { get } from "../api.js";
import { h, put, s, swap } from "../dom.js";
import { count, text } from "../format.js";
import { columns, fold, levels, NODES_MAX } from "../graph-layout.js";
import { finishedOf, legend, stateWord, STATES } from "../parts.js";
import { jobTabs } from "./job.js";

const PARTS_MAX = 5000;
const WIDE = 150;
const HIGH = 38;
const GAP_X = 60;
const GAP_Y = 14;
const BAR_EDGE = 8;

export async function show(place, visit) {
  const [number] = visit.parts;
  const note = h("p", { class: "note" });
  const counts = h("div", {});
  const drawing = h("div", { class: "graph", tabindex: "0", "aria-label": "graph of the job" });
  put(place, h("h1", {}, `Graph of job ${number}`), jobTabs(number, "/graph"),
    h("section", { class: "panel" }, counts, note, drawing));
  const look = async () => {
    const [job, { parts, next }] = await Promise.all([get(`jobs/${number}`), readParts(number)]);
    if (visit.isOver) return;
    swap(counts, legend(job.counts));
    let nodes = levels(parts.map((part) => toNode(number, part, parts)));
    const isFolded = nodes.length > NODES_MAX;
    if (isFolded) nodes = fold(nodes, sum);
    note.textContent = [
      isFolded && `${count(parts.length)} parts, folded by level`,
      next && `only the first ${count(parts.length)} parts are drawn`,
    ].filter(Boolean).join("; ");
    note.hidden = !note.textContent;
    swap(drawing, draw(number, nodes));
  };
  return { title: `Graph of job ${number}`, look, isWanted: (event) => event.job === number };
}

async function readParts(number) {
  const parts = [];
  let next = 1;
  while (next && parts.length < PARTS_MAX) {
    const page = await get(`jobs/${number}/parts?limit=1000&from=${next}`);
    parts.push(...page.parts);
    next = page.next;
  }
  return { parts, next };
}

function toNode(job, part, parts) {
  return {
    id: part.first, first: part.first, tasks: part.count, name: text(part.name) || String(part.first),
    counts: part.counts, state: part.state ?? stateOfMany(part.counts),
    after: [...new Set([...part.after, ...part.each].filter((one) => one.job === job)
      .map((one) => owner(parts, one.task ?? one.array)))],
  };
}

/** A part may wait for one element of an array. Parts come in the order of their numbers. */
function owner(parts, task) {
  let [low, high] = [0, parts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (parts[middle].first <= task) low = middle + 1;
    else high = middle;
  }
  return parts[low - 1]?.first;
}

/** What matters most about many: the bar in the node shows the rest. */
function stateOfMany(counts) {
  const first = ["failed", "running", "ready", "held", "blocked", "delayed", "waiting", "cancelled"];
  return first.find((state) => counts[state] > 0) ?? "done";
}

function sum(list) {
  const counts = Object.fromEntries(STATES.map((state) => [state, list.reduce((all, node) => all + node.counts[state], 0)]));
  const tasks = list.reduce((all, node) => all + node.tasks, 0);
  return { name: `${count(list.length)} parts`, tasks, counts, state: stateOfMany(counts) };
}

function draw(job, nodes) {
  if (nodes.length === 0) return h("p", { class: "empty" }, "no tasks");
  const made = columns(nodes);
  const tall = Math.max(...made.map((column) => column.length));
  const height = tall * (HIGH + GAP_Y) + GAP_Y;
  const width = made.length * (WIDE + GAP_X) - GAP_X + 4;
  const at = new Map();
  made.forEach((column, level) => {
    const top = (height - column.length * (HIGH + GAP_Y) + GAP_Y) / 2;
    column.forEach((node, row) => at.set(node.id, { x: 2 + level * (WIDE + GAP_X), y: top + row * (HIGH + GAP_Y) }));
  });
  const edges = nodes.flatMap((node) => node.after.map((id) => {
    const from = at.get(id);
    const to = at.get(node.id);
    const [x1, y1, x2, y2] = [from.x + WIDE, from.y + HIGH / 2, to.x, to.y + HIGH / 2];
    const bend = Math.max(24, (x2 - x1) / 2);
    return s("path", { class: "edge", d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` });
  }));
  return s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "tasks and what they wait for" },
    edges, nodes.map((node) => drawNode(job, node, at.get(node.id))));
}

function drawNode(job, node, { x, y }) {
  const isOne = node.tasks === 1;
  const under = isOne ? stateWord(node.state) : manyWords(node);
  const to = node.first === undefined ? `#/jobs/${job}/tasks` : isOne ? `#/jobs/${job}/tasks/${node.first}`
    : `#/jobs/${job}/tasks?from=${node.first}`;
  const short = node.name.length > 20 ? `${node.name.slice(0, 19)}…` : node.name;
  const transform = `translate(${x} ${y})`;
  // The words lie over the link and are not in it: it is called by the whole name, which they may cut.
  return [
    s("a", { href: to, "aria-label": `${node.name}: ${under}` },
      s("g", { class: `node state-${node.state}`, transform },
        s("title", {}, `${node.name}: ${under}`),
        s("rect", { class: "frame", width: WIDE, height: HIGH, rx: 7 }),
        s("rect", { class: `fill state-${node.state}`, width: WIDE, height: HIGH, rx: 7 }),
        isOne ? [] : drawBar(node))),
    s("g", { class: "node-words", "aria-hidden": "true", transform },
      s("text", { x: 10, y: isOne ? 16 : 15 }, short), s("text", { class: "under", x: 10, y: isOne ? 30 : 27 }, under)),
  ];
}

function manyWords({ counts, tasks }) {
  const some = ["failed", "running"].filter((state) => counts[state] > 0);
  return [`${count(finishedOf(counts))} of ${count(tasks)}`, ...some.map((state) => `${count(counts[state])} ${stateWord(state)}`)].join(", ");
}

/** A piece for each state that elements are in, and none for those that wait. */
function drawBar({ counts, tasks }) {
  let x = BAR_EDGE;
  const shown = STATES.filter((state) => state !== "waiting" && counts[state] > 0);
  return shown.map((state) => {
    const width = (WIDE - 2 * BAR_EDGE) * counts[state] / tasks;
    const piece = s("rect", { class: `piece state-${state}`, x, y: HIGH - 7, width, height: 4 });
    x += width;
    return piece;
  });
}
