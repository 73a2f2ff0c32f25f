// Who is there: slots, what runs, conduct with its reason, how fast, when last seen.

import { get } from "../api.js";
import { h, put, swap, wide } from "../dom.js";
import { ago, count, rate, text } from "../format.js";
import { table } from "../parts.js";
import { learn } from "../workers.js";
import { actOnPools, drawPools } from "./pools.js";
import { actOnWorkers, conductBadge, workerButtons } from "./worker.js";

const PAGE = 200;

export async function show(place, visit) {
  const from = visit.query.get("from");
  const list = h("div", {});
  const more = h("div", { class: "pager" });
  const pools = h("div", {});
  put(place, h("h1", {}, "Workers"), h("section", { class: "panel" }, list, more), pools);
  let before = null;

  const look = async () => {
    const [page, ofPools] = await Promise.all([get(`workers?limit=${PAGE}${from ? `&from=${from}` : ""}`), drawPools(visit.me)]);
    if (visit.isOver) return;
    learn(page.workers);
    const now = { at: Date.now(), ended: new Map(page.workers.map((one) => [one.worker, one.succeeded + one.failed])) };
    // A speed needs two looks that are a little apart.
    if (!before || now.at - before.at > 10_000) before = { ...now, older: before };
    swap(list, drawWorkers(page.workers, before.older ?? before, now, visit.me));
    swap(pools, ofPools);
    swap(more, from && h("a", { href: "#/workers" }, "first page"),
      page.next && h("a", { href: `#/workers?from=${page.next}` }, "next page"));
  };
  actOnWorkers(place, look);
  actOnPools(place, look);
  return { title: "Workers", look };
}

function drawWorkers(workers, then, now, me) {
  const speed = (worker) => {
    const ended = now.ended.get(worker.worker) - (then.ended.get(worker.worker) ?? now.ended.get(worker.worker));
    return now.at - then.at > 1000 ? rate((ended / (now.at - then.at)) * 1000) : "–";
  };
  return table(["Worker", "Group", "Dialect", "Conduct", ["Slots", "broad"], ["Holds", "number"], ["Done", "number"],
    ["Failed", "number"], ["Speed", "number"], "Seen", ""],
  workers.map((worker) => [
    h("a", { class: "name", href: `#/workers/${worker.worker}` }, text(worker.name)),
    text(worker.group), text(worker.dialect), conduct(worker), slots(worker), count(worker.lease_count),
    count(worker.succeeded), count(worker.failed), speed(worker), worker.connected ? "now" : ago(worker.seen_ms),
    me.role === "admin" ? workerButtons(worker) : "",
  ]), "no worker yet: `laboro worker` starts one");
}

/** Who is barred wants to know why. */
function conduct(worker) {
  const { standing, reason } = worker.conduct;
  const why = standing !== "good" && reason;
  return why ? h("span", {}, conductBadge(worker), h("small", {}, ` ${reason}`)) : conductBadge(worker);
}

function slots(worker) {
  const words = `${worker.slots_used} of ${worker.slots}`;
  return h("div", { class: "progress-cell" }, h("div", { class: "progress", role: "img", "aria-label": `${words} slots in use` },
    wide(h("span", { class: "part state-running" }), worker.slots ? worker.slots_used / worker.slots : 0)), h("small", {}, words));
}
