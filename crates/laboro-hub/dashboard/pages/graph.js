// The tasks of a job and what waits for what, drawn, coloured by state, live. An array is one node; what is too large
// to look at is folded by level.

import { get } from "../api.js";
import { h, put, s, swap } from "../dom.js";
import { count, text } from "../format.js";
import { columns, fold, levels, NODES_MAX } from "../graph-layout.js";
import { legend, stateWord } from "../parts.js";
import { jobTabs } from "./job.js";

const PARTS_MAX = 5000;
const WIDE = 150;
const HIGH = 38;
const GAP_X = 60;
const GAP_Y = 14;

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
    state: part.state ?? arrayState(part), finished: part.count - part.unfinished, bad: part.bad,
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

/** What matters most about many. */
function arrayState(part) {
  if (part.bad > 0) return "failed";
  if (part.unfinished === 0) return "done";
  return part.unfinished < part.count ? "leased" : "waiting";
}

function sum(list) {
  const add = (name) => list.reduce((all, node) => all + node[name], 0);
  const states = new Set(list.map((node) => node.state));
  const state = ["failed", "leased", "ready", "held", "blocked", "delayed", "waiting", "cancelled", "done"]
    .find((one) => states.has(one));
  return { name: `${count(list.length)} parts`, tasks: add("tasks"), finished: add("finished"), bad: add("bad"), state };
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
  const under = isOne ? stateWord(node.state) : `${count(node.finished)} of ${count(node.tasks)}${node.bad ? `, ${count(node.bad)} failed` : ""}`;
  const to = node.first === undefined ? `#/jobs/${job}/tasks` : isOne ? `#/jobs/${job}/tasks/${node.first}`
    : `#/jobs/${job}/tasks?from=${node.first}`;
  const share = isOne ? 1 : node.finished / node.tasks;
  const short = node.name.length > 20 ? `${node.name.slice(0, 19)}…` : node.name;
  return s("a", { href: to, "aria-label": `${node.name}: ${under}` },
    s("g", { class: `node state-${node.state}`, transform: `translate(${x} ${y})` },
      s("title", {}, `${node.name}: ${under}`),
      s("rect", { width: WIDE, height: HIGH, rx: 7 }),
      s("rect", { class: "fill", width: WIDE * share, height: HIGH, rx: 7 }),
      s("text", { x: 10, y: 16 }, short), s("text", { class: "under", x: 10, y: 30 }, under)));
}
