// The tasks of a job, in one state or all, a page at a time.

import { get } from "../api.js";
import { h, put, swap } from "../dom.js";
import { clock, duration, outcome, text } from "../format.js";
import { badge, STATES, stateWord, table } from "../parts.js";
import { meet, workerLink } from "../workers.js";
import { jobTabs } from "./job.js";

const PAGE = 100;

export async function show(place, visit) {
  const [number] = visit.parts;
  const state = visit.query.get("state") ?? "";
  const from = visit.query.get("from");
  const list = h("div", {});
  const more = h("div", { class: "pager" });
  const address = (query) => {
    const words = String(new URLSearchParams(Object.entries(query).filter(([, value]) => value)));
    return `#/jobs/${number}/tasks${words ? `?${words}` : ""}`;
  };
  const filter = h("select", { "data-filter": true, name: "state",
    onchange: (event) => { location.hash = address({ state: event.target.value }); } },
  ["", ...STATES].map((one) => h("option", { value: one, selected: one === state }, one ? stateWord(one) : "any")));
  const go = h("input", { type: "number", min: "1", name: "number", placeholder: "number", onchange: (event) => {
    if (event.target.value) location.hash = `#/jobs/${number}/tasks/${Number(event.target.value)}`;
  } });
  put(place, h("div", { class: "head" }, h("h1", {}, `Tasks of job ${number}`),
    h("div", { class: "filters" }, h("label", {}, "state ", filter), h("label", {}, "go to ", go))),
  jobTabs(number, "/tasks"), h("section", { class: "panel" }, list, more));

  const look = async () => {
    const query = new URLSearchParams({ limit: String(PAGE) });
    if (state) query.set("state", state);
    if (from) query.set("from", from);
    const page = await get(`jobs/${number}/tasks?${query}`);
    await meet(page.tasks.flatMap((task) => task.attempts.slice(-1).map((one) => one.worker)));
    if (visit.isOver) return;
    swap(list, drawTasks(page.tasks));
    swap(more, from && h("a", { href: address({ state }) }, "first page"),
      page.next && h("a", { href: address({ state, from: String(page.next) }) }, "next page"));
  };
  return { title: `Tasks of job ${number}`, look, isWanted: (event) => event.job === number };
}

function drawTasks(tasks) {
  return table([["Task", "number"], "Name", "State", "Worker", "Started", ["Took", "number"], "How"],
    tasks.map((task) => {
      const last = task.attempts.at(-1);
      const end = last && (last.ended_ms ?? Date.now());
      return [h("a", { href: `#/jobs/${task.job}/tasks/${task.task}` }, String(task.task)),
        h("a", { class: "name", href: `#/jobs/${task.job}/tasks/${task.task}` }, text(task.label) || text(task.name) || "–"),
        badge(task.state), last ? workerLink(last.worker) : "", last ? clock(last.started_ms) : "",
        last ? duration(end - last.started_ms) : "", last?.outcome ? outcome(last.outcome) : ""];
    }), "no such tasks");
}
