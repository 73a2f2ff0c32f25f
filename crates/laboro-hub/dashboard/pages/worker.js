// One worker with what it holds, and what an admin can do to it.

import { get, post } from "../api.js";
import { agree, attempt, line } from "../dialog.js";
import { act, h, put, swap } from "../dom.js";
import { ago, amount, bytes, clock, count, text } from "../format.js";
import { card, panel, table, taskLink } from "../parts.js";
import { learn } from "../workers.js";

export async function show(place, visit) {
  const [number] = visit.parts;
  const [head, buttons, cards, why, holds] = Array.from({ length: 5 }, () => h("div", {}));
  put(place, h("div", { class: "head" }, head, buttons), why, cards, panel("Its tasks", holds));
  const look = async () => {
    const worker = await get(`workers/${number}`);
    if (visit.isOver) return;
    learn([worker]);
    swap(head, h("h1", {}, text(worker.name), " ", conductBadge(worker),
      h("small", {}, ` worker ${worker.worker} in ${text(worker.group)}, speaks ${text(worker.dialect)}`)));
    swap(buttons, visit.me.role === "admin" && workerButtons(worker));
    swap(why, drawWhy(worker));
    swap(cards, h("div", { class: "cards" }, card("Slots", `${worker.slots_used} / ${worker.slots}`, "in use"),
      worker.memory_used_bytes > 0 && card("Memory", bytes(worker.memory_used_bytes), `given out of ${bytes(worker.memory_bytes)}`),
      (worker.resources ?? []).map((one) => card(text(one.name), `${amount(one.used)} / ${count(one.count)}`, "in use")),
      card("Done", count(worker.succeeded), "since it is known", "done"), card("Failed", count(worker.failed), "", "failed"),
      card("Seen", worker.connected ? "now" : ago(worker.seen_ms), clock(worker.seen_ms))));
    swap(holds, table(["Task", "Job", "Lease"], (worker.leases ?? []).map((held) => [taskLink(held.job, held.task),
      h("a", { href: `#/jobs/${held.job}` }, String(held.job)), held.lease]), "nothing"));
  };
  actOnWorkers(place, look);
  return { title: `Worker ${number}`, look };
}

function drawWhy(worker) {
  const { conduct } = worker;
  if (conduct.standing === "good") return null;
  const until = conduct.until_ms ? `, until ${clock(conduct.until_ms)}` : "";
  return h("p", { class: "why" }, h("b", {}, `${conduct.standing.replaceAll("_", " ")}${until}: `),
    conduct.reason ?? "no reason given");
}

export function conductBadge(worker) {
  const { conduct } = worker;
  // Whoever was ejected is gone because of that.
  if (!worker.connected && conduct.standing !== "ejected") return h("span", { class: "badge state-cancelled" }, "away");
  if (conduct.standing !== "good") {
    const kind = conduct.standing === "ejected" ? "failed" : "held";
    return h("span", { class: `badge state-${kind}`, title: conduct.reason ?? "" }, conduct.standing.replaceAll("_", " "));
  }
  const busy = worker.reserved ? "reserved" : worker.kept ? "kept" : "";
  if (busy && !worker.draining) return h("span", { class: "badge state-held", title: "for a task that takes several workers" }, busy);
  return worker.draining ? h("span", { class: "badge state-delayed" }, "draining")
    : h("span", { class: "badge state-done" }, "good");
}

export function workerButtons(worker) {
  const button = (name, words, kind) => h("button", { type: "button", class: `quiet ${kind ?? ""}`, "data-do": name,
    "data-worker": String(worker.worker), "data-name": text(worker.name) }, words);
  const isGood = worker.conduct.standing === "good";
  return h("div", { class: "buttons" },
    worker.draining ? button("lift", "Lift") : button("drain", "Drain"),
    button("stop", "Stop", "danger"),
    isGood ? button("eject", "Eject", "danger") : button("pardon", "Pardon"));
}

/** Hears the buttons of any number of workers. */
export function actOnWorkers(place, look) {
  const change = (worker, what, done, body) =>
    attempt(() => post(`workers/${worker}/${what}`, body), done).then(look);
  act(place, {
    drain: ({ worker }) => change(worker, "drain", "accepts no more tasks"),
    lift: ({ worker }) => change(worker, "lift", "back to work"),
    pardon: ({ worker }) => change(worker, "pardon", "in good standing"),
    stop: async ({ worker, name }) => {
      if (await agree(`Stop ${name}?`, "It accepts no more tasks, and its running tasks go back to the queue.", "Stop it")) {
        change(worker, "stop", "stopped");
      }
    },
    eject: async ({ worker, name }) => {
      const reason = await line(`Eject ${name}?`, "Reason, visible to everyone", "Eject it");
      if (reason !== null) change(worker, "eject", "ejected", reason ? { reason } : {});
    },
  });
}
