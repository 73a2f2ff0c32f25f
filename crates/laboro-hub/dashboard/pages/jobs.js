// All jobs, newest first, a page at a time.

import { get } from "../api.js";
import { h, put, swap } from "../dom.js";
import { drawJobs } from "./overview.js";

const STATES = ["", "running", "waiting", "held", "stopped", "failed", "cancelled", "done"];
const PAGE = 50;

export async function show(place, visit) {
  const wanted = { state: visit.query.get("state") ?? "", group: visit.query.get("group") ?? "" };
  const from = visit.query.get("from");
  const list = h("div", {});
  const more = h("div", { class: "pager" });
  const { groups } = await get("groups");
  const choose = (name, choices) => h("label", {}, `${name} `, h("select", { name, "data-filter": true,
    onchange: (event) => { location.hash = address({ ...wanted, [name]: event.target.value }); } },
  choices.map((choice) => h("option", { value: choice, selected: choice === wanted[name] }, choice || "any"))));
  put(place, h("div", { class: "head" }, h("h1", {}, "Jobs"), h("div", { class: "filters" },
    choose("state", STATES), choose("group", ["", ...groups.map((group) => String(group.name))]))),
  h("section", { class: "panel" }, list, more));

  const look = async () => {
    const query = new URLSearchParams({ order: "newest", limit: String(PAGE) });
    if (wanted.state) query.set("state", wanted.state);
    if (wanted.group) query.set("group", wanted.group);
    if (from) query.set("from", from);
    const page = await get(`jobs?${query}`);
    if (visit.isOver) return;
    swap(list, drawJobs(page.jobs));
    swap(more, from && h("a", { href: address(wanted) }, "newest"),
      page.next !== null && page.next !== undefined && h("a", { href: address({ ...wanted, from: page.next }) }, "older"));
  };
  return { title: "Jobs", look };
}

function address(wanted) {
  const query = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value !== "" && value !== undefined));
  return `#/jobs${String(query) ? `?${query}` : ""}`;
}
