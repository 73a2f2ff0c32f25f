// Names of workers by number, asked for once each: other things of the API know a worker only by its number.

import { get } from "./api.js";
import { h } from "./dom.js";
import { text } from "./format.js";

const names = new Map();
const KNOWN_MAX = 5000;

/** Learns from a list that was asked for anyway. */
export function learn(workers) {
  if (names.size > KNOWN_MAX) names.clear();
  for (const worker of workers) names.set(worker.worker, text(worker.name));
}

/** Asks for those that are not known yet, a few at once. */
export async function meet(numbers) {
  const strangers = [...new Set(numbers)].filter((number) => number !== null && !names.has(number)).slice(0, 50);
  if (strangers.length > 5) {
    learn((await get("workers?limit=1000")).workers);
  }
  await Promise.all(strangers.filter((number) => !names.has(number)).map(async (number) => {
    const worker = await get(`workers/${number}`).catch(() => null);
    // One that is forgotten keeps its number as its name.
    names.set(number, worker ? text(worker.name) : `#${number}`);
  }));
}

export function nameOf(number) {
  return number === null || number === undefined ? "others" : names.get(number) ?? `#${number}`;
}

export function workerLink(number) {
  if (number === null || number === undefined) return "others";
  return h("a", { href: `#/workers/${number}` }, nameOf(number));
}
