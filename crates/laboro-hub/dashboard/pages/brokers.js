// Request brokers: the table of workers of each, in turn, and what became of requests. A hub may have none, or be too
// old to tell.

import { getIfThere, has } from "../api.js";
import { h, put, swap } from "../dom.js";
import { bytes, count, rate, text } from "../format.js";
import { card, table } from "../parts.js";

export async function show(place, visit) {
  const list = h("div", {});
  put(place, h("h1", {}, "Brokers"), list);
  const look = async () => {
    const answer = (await has("brokers")) ? await getIfThere("brokers") : null;
    if (visit.isOver) return;
    const brokers = answer?.brokers ?? [];
    swap(list, brokers.length === 0
      ? h("section", { class: "panel" }, h("p", { class: "empty" },
        "This hub has no request broker; `laboro hub --door rrmq=ADDRESS` opens one."))
      : brokers.map(drawBroker));
  };
  return { title: "Brokers", look };
}

function drawBroker(broker) {
  const dropped = Object.entries(broker.dropped ?? {}).filter(([, number]) => number > 0);
  return h("section", { class: "panel" }, h("h2", {}, `rrmq on ${text(broker.address)}`),
    h("div", { class: "cards" }, card("Requests", count(broker.requests ?? 0), `${count(broker.dispatched ?? 0)} given out`),
      card("Waiting", count(broker.waiting ?? 0), bytes(broker.waiting_bytes ?? 0)),
      card("Passed on", count(broker.passed ?? 0), "answers, mostly"),
      card("Connections", count(broker.connections ?? 0), `${count(broker.slow ?? 0)} cut off`)),
    table(["Worker", ["Free", "number"], ["Slots", "number"], ["Requests", "number"], ["Speed", "number"], ""],
      (broker.workers ?? []).map((worker) => [h("code", {}, text(worker.address)), count(worker.free ?? 0),
        count(worker.slots ?? 0), count(worker.messages ?? 0), rate(worker.per_s ?? 0), worker.away ? "away" : ""]),
      "no worker is registered"),
    dropped.length > 0 && h("p", { class: "note" }, "dropped: ",
      dropped.map(([why, number]) => `${count(number)} ${why.replaceAll("_", " ")}`).join(", ")));
}
