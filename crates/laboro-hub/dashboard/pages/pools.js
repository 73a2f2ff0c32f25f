// Pools of workers: what each has in its batch system, and why it starts nothing. Shown with the workers.

import { get, post, remove } from "../api.js";
import { agree, attempt } from "../dialog.js";
import { act, h } from "../dom.js";
import { ago, clock, count } from "../format.js";
import { panel, table } from "../parts.js";

/** Nothing where there are no pools. */
export async function drawPools(me) {
  const { pools } = await get("pools");
  if (pools.length === 0) return null;
  return panel("Pools", table(["Pool", "Kind", "State", ["Workers", "number"], ["Queued", "number"], "What it does", "Last event", ""],
    pools.map((pool) => [
      h("span", { class: "name" }, pool.spec.name), pool.spec.kind, stateBadge(pool),
      `${count(pool.running)} of ${count(pool.spec.max_allocations)}`, count(pool.queued), pool.reason, lastEvent(pool),
      me.role === "admin" ? poolButtons(pool) : "",
    ])));
}

function stateBadge(pool) {
  const kind = { active: pool.failures > 0 ? "failed" : "done", paused: "held", removing: "cancelled" }[pool.state];
  return h("span", { class: `badge state-${kind}` }, pool.state === "active" && pool.failures > 0 ? "waits" : pool.state);
}

function lastEvent(pool) {
  const last = pool.events.at(-1);
  return last ? h("span", { title: clock(last.at_ms) }, last.text, h("small", {}, ` ${ago(last.at_ms)}`)) : "";
}

function poolButtons(pool) {
  const button = (name, words, kind) =>
    h("button", { type: "button", class: `quiet ${kind ?? ""}`, "data-do": name, "data-pool": pool.spec.name }, words);
  if (pool.state === "removing") return "";
  return h("div", { class: "buttons" }, pool.state === "paused" || pool.failures > 0
    ? button("resume-pool", "Resume") : button("pause-pool", "Pause"), button("remove-pool", "Remove", "danger"));
}

/** Hears the buttons of any number of pools. */
export function actOnPools(place, look) {
  const at = (pool) => `pools/${encodeURIComponent(pool)}`;
  act(place, {
    "pause-pool": ({ pool }) => attempt(() => post(`${at(pool)}/pause`), "starts nothing more").then(look),
    "resume-pool": ({ pool }) => attempt(() => post(`${at(pool)}/resume`), "starts workers again").then(look),
    "remove-pool": async ({ pool }) => {
      if (await agree(`Remove ${pool}?`, "Its allocations are cancelled, and what runs there runs again elsewhere.", "Remove it")) {
        attempt(() => remove(at(pool)), "is being removed").then(look);
      }
    },
  });
}
