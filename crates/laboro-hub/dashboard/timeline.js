// When what ran where: a row for each slot of each worker, a bar for each attempt.

import { isNarrow } from "./charts.js";
import { h, s } from "./dom.js";
import { clock, duration, outcome } from "./format.js";
import { nameOf } from "./workers.js";

const ROW = 14;
const ROWS_MAX = 60;

/**
 * `spans` are attempts that ended, `running` those that go on: { task, worker, started_ms, took_ms?, outcome? }.
 */
export function timeline(job, spans, running, now, every) {
  const all = [...spans, ...running.map((run) => ({ ...run, took_ms: Math.max(0, now - run.started_ms) }))];
  if (all.length === 0) return h("p", { class: "empty" }, "nothing has run yet");
  const [width, left] = isNarrow() ? [380, 64] : [1000, 120];
  const first = Math.min(...all.map((span) => span.started_ms));
  const last = Math.max(...all.map((span) => span.started_ms + span.took_ms), first + 1);
  const rows = lanes(all);
  const shown = rows.slice(0, ROWS_MAX);
  const height = shown.length * ROW + 26;
  const x = (at) => left + ((at - first) / (last - first)) * (width - left - 4);

  const bars = shown.flatMap((row, at) => row.spans.map((span) => {
    const state = !span.outcome ? "running" : span.outcome.kind === "success" ? "done" : "failed";
    const words = `task ${span.task} at ${nameOf(span.worker)}: ${span.outcome ? outcome(span.outcome) : "runs"}, ` +
      `${duration(span.took_ms)} from ${clock(span.started_ms)}`;
    const from = x(span.started_ms);
    const bar = s("rect", { class: `bar state-${state}`, x: from.toFixed(1), y: at * ROW + 2,
      width: Math.max(x(span.started_ms + span.took_ms) - from, 1.2).toFixed(1), height: ROW - 4, rx: 1.5 },
    s("title", {}, words));
    return s("a", { href: `#/jobs/${job}/tasks/${span.task}`, "aria-label": words }, bar);
  }));
  const names = shown.map((row, at) => row.isFirst && s("text", { class: "tick", x: 0, y: at * ROW + 11 },
    nameOf(row.worker).slice(0, isNarrow() ? 10 : 18)));
  const lines = shown.map((row, at) => row.isFirst && at > 0 && s("line",
    { class: "grid", x1: 0, x2: width, y1: at * ROW, y2: at * ROW }));
  const ticks = [0, 0.5, 1].map((share) => s("text", { class: "tick", y: height - 6,
    x: left + share * (width - left - 4), "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle" },
  clock(first + (last - first) * share)));
  const notes = [
    every > 1 && `every ${every}th attempt is shown`,
    rows.length > shown.length && `${rows.length - shown.length} more slots are not shown`,
  ].filter(Boolean);
  return h("figure", { class: "chart timeline" },
    s("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "timeline of attempts" },
      lines, names, bars, ticks),
    notes.length > 0 && h("figcaption", {}, notes.join("; ")));
}

/** The hub does not number slots: attempts at one worker that overlap stand in rows of their own. */
function lanes(all) {
  const workers = new Map();
  for (const span of [...all].sort((a, b) => a.started_ms - b.started_ms || a.task - b.task)) {
    const rows = workers.get(span.worker) ?? workers.set(span.worker, []).get(span.worker);
    let row = rows.find((one) => one.until <= span.started_ms);
    if (!row) {
      row = { worker: span.worker, spans: [], until: 0, isFirst: rows.length === 0 };
      rows.push(row);
    }
    row.spans.push(span);
    row.until = span.started_ms + span.took_ms;
  }
  const byName = ([a], [b]) => nameOf(a).localeCompare(nameOf(b), undefined, { numeric: true });
  return [...workers].sort(byName).flatMap(([, rows]) => rows);
}
