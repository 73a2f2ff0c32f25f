// Pieces that many pages show: states, progress, cards, tables, buttons.

import { h, wide } from "./dom.js";
import { count, percent } from "./format.js";

/** Of a task, in the order they are drawn. */
export const STATES = ["done", "running", "ready", "delayed", "waiting", "held", "blocked", "failed", "cancelled"];

export function stateWord(state) {
  return state.replaceAll("_", " ");
}

export function badge(state) {
  return h("span", { class: `badge state-${state}` }, stateWord(state));
}

export function totalOf(counts) {
  return STATES.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
}

export function finishedOf(counts) {
  return counts.done + counts.failed + counts.cancelled;
}

/** One bar, a part for each state. */
export function progress(counts) {
  const total = totalOf(counts);
  const words = STATES.filter((state) => counts[state]).map((state) => `${counts[state]} ${stateWord(state)}`);
  const shown = STATES.filter((state) => counts[state]);
  return h("div", { class: "progress", role: "img", "aria-label": words.join(", ") || "no tasks", title: words.join(", ") },
    shown.map((state) => wide(h("span", { class: `part state-${state}` }), counts[state] / total)));
}

export function legend(counts) {
  const shown = STATES.filter((state) => counts[state]);
  return h("ul", { class: "legend" }, shown.map((state) =>
    h("li", {}, h("span", { class: `dot state-${state}` }), h("b", {}, count(counts[state])), ` ${stateWord(state)}`)));
}

export function progressWords(counts) {
  return percent(finishedOf(counts), totalOf(counts));
}

export function card(title, value, under, state) {
  return h("div", { class: `card ${state ? `edge-${state}` : ""}` },
    h("span", { class: "card-title" }, title), h("strong", {}, value), h("small", {}, under ?? ""));
}

/** Columns are names, or [name, class]. Rows are lists of what stands in the cells. */
export function table(columns, rows, empty = "nothing here") {
  const heads = columns.map((column) => (Array.isArray(column) ? column : [column, ""]));
  if (rows.length === 0) return h("p", { class: "empty" }, empty);
  // On a phone a broad table becomes a list.
  return h("div", { class: columns.length > 5 ? "scroll large" : "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, heads.map(([name, kind]) =>
      (name ? h("th", { scope: "col", class: kind }, name) : h("td", { class: kind }))))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, at) =>
      h("td", { class: heads[at][1], "data-label": heads[at][0] }, cell)))))));
}

export function panel(title, ...content) {
  return h("section", { class: "panel" }, h("h2", {}, title), content);
}

/** Tasks by number, as links. */
export function taskLink(job, task, words) {
  return h("a", { href: `#/jobs/${job}/tasks/${task}` }, words ?? `${job}/${task}`);
}
