// Names of workers by number, asked for once each: other things of the API know a worker only by its number.

import { get } from "./api.js";
import { h } from "./dom.js";
import { text } from "./format.js";

const names = new Map();
const KNOWN_MAX = 20_000;
const ASKED_MAX = 100;

/** Learns from a list that was asked for anyway. */
export function learn(workers) {
  if (names.size > KNOWN_MAX) names.clear();
  for (const worker of workers) names.set(worker.worker, text(worker.name));
}

/** Asks for those that are not known yet, as many as one answer holds. */
export async function meet(numbers) {
  const isStranger = (number) => number !== null && number !== undefined && !names.has(number);
  const strangers = [...new Set(numbers)].filter(isStranger).slice(0, ASKED_MAX);
  if (strangers.length === 0) return;
  learn((await get(`workers?limit=${ASKED_MAX}&numbers=${strangers.join(",")}`)).workers);
  // One that is forgotten keeps its number as its name.
  for (const number of strangers.filter(isStranger)) names.set(number, `#${number}`);
}

export function nameOf(number) {
  return number === null || number === undefined ? "others" : names.get(number) ?? `#${number}`;
}

export function workerLink(number) {
  if (number === null || number === undefined) return "others";
  return h("a", { href: `#/workers/${number}` }, nameOf(number));
}
