// Charts as drawings, from numbers. Colours come from the style sheet, by the names of states.

import { h, s } from "./dom.js";
import { clock, count, duration } from "./format.js";

/** Drawn for the room there is: a drawing that is only made smaller has letters that nobody can read. */
export function isNarrow() {
  return window.matchMedia("(max-width: 640px)").matches;
}

const width = () => (isNarrow() ? 380 : 720);
const LEFT = 46;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;

/** A round number at or above this one, for the top of an axis. */
export function roundUp(most) {
  if (most <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= most);
}

/**
 * Lines over time. `series` is [{ name, state, values }], `times` the moment of each value; stacked ones are filled.
 */
export function overTime({ label, times, series, stacked = false, unit = count, height = 180 }) {
  const known = times.length;
  if (known < 2) return h("p", { class: "empty" }, "not enough has happened yet");
  const tops = times.map((_, at) => series.reduce(
    (sum, one) => (stacked ? sum + one.values[at] : Math.max(sum, one.values[at])), 0));
  const most = roundUp(Math.max(...tops));
  const plot = { width: width() - LEFT - RIGHT, height: height - TOP - BOTTOM };
  const span = times[known - 1] - times[0] || 1;
  const x = (at) => LEFT + ((times[at] - times[0]) / span) * plot.width;
  const y = (value) => TOP + plot.height * (1 - value / most);

  const base = times.map(() => 0);
  // On top of others, nothing at all would look like a line of its own.
  const isSeen = (one) => !stacked || one.values.some((value) => value > 0);
  const drawn = series.filter(isSeen).map((one) => {
    const upper = one.values.map((value, at) => (stacked ? base[at] + value : value));
    const line = upper.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
    let area = null;
    if (stacked) {
      const back = base.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).reverse();
      area = s("polygon", { class: `area state-${one.state}`, points: [...line, ...back].join(" ") });
      upper.forEach((value, at) => { base[at] = value; });
    }
    return [area, s("polyline", { class: `line state-${one.state}`, points: line.join(" ") })];
  });
  const names = series.map((one) => h("li", {}, h("span", { class: `dot state-${one.state}` }),
    one.name, " ", h("b", {}, unit(one.values[known - 1]))));
  return h("figure", { class: "chart" },
    frame(label, height, [grid(most, y, unit), timeAxis(times[0], times[known - 1], height), drawn.reverse()]),
    h("figcaption", {}, h("ul", { class: "legend" }, names)));
}

function frame(label, height, content) {
  return s("svg", { viewBox: `0 0 ${width()} ${height}`, role: "img", "aria-label": label },
    s("title", {}, label), content);
}

function grid(most, y, unit) {
  return [0, 0.5, 1].map((share) => {
    const value = most * share;
    return s("g", {}, s("line", { class: "grid", x1: LEFT, x2: width() - RIGHT, y1: y(value), y2: y(value) }),
      s("text", { class: "tick", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, unit(value)));
  });
}

function timeAxis(first, last, height) {
  return [0, 0.5, 1].map((share) => {
    const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
    const at = LEFT + share * (width() - LEFT - RIGHT);
    return s("text", { class: "tick", x: at, y: height - 6, "text-anchor": anchor },
      clock(first + (last - first) * share));
  });
}

/** How long things took: a bar for each bucket, which is wider in time the longer it is. */
export function histogram(durations, height = 180) {
  const { buckets } = durations;
  if (buckets.length === 0) return h("p", { class: "empty" }, "nothing has ended yet");
  const most = roundUp(Math.max(...buckets.map((bucket) => bucket.count)));
  const plot = { width: width() - LEFT - RIGHT, height: height - TOP - BOTTOM };
  const y = (value) => TOP + plot.height * (1 - value / most);
  // Few buckets make a chart of few bars, not of broad ones.
  const step = Math.min(plot.width / buckets.length, 48);
  const bars = buckets.map((bucket, at) => {
    const words = `${count(bucket.count)} took ${duration(bucket.from_ms)} to ${duration(bucket.to_ms)}`;
    const tall = bucket.count > 0 ? Math.max(plot.height * (bucket.count / most), 1.5) : 0;
    return s("rect", { class: "bar state-running", x: LEFT + at * step + 1, width: Math.max(step - 2, 1),
      y: TOP + plot.height - tall, height: tall, rx: 1.5 }, s("title", {}, words));
  });
  const every = Math.max(1, Math.ceil(72 / step));
  const ticks = buckets.map((bucket, at) => at % every === 0 && s("text",
    { class: "tick", x: LEFT + at * step, y: height - 6 }, duration(bucket.from_ms)));
  const words = `durations of ${durations.count} attempts`;
  return h("figure", { class: "chart" }, frame(words, height, [grid(most, y, count), bars, ticks]));
}

/** A line without axes, for tables. */
export function spark(values, state = "running") {
  const most = Math.max(...values, 1);
  const points = values.map((value, at) =>
    `${((at / Math.max(values.length - 1, 1)) * 100).toFixed(1)},${(20 - (value / most) * 18).toFixed(1)}`);
  return s("svg", { class: "spark", viewBox: "0 0 100 22", "aria-hidden": "true", preserveAspectRatio: "none" },
    s("polyline", { class: `line state-${state}`, points: points.join(" ") }));
}
