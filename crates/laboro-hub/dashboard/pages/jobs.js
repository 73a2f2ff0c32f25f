// All jobs, newest first, a page at a time.

import { get } from "../api.js";
import { h, put, swap } from "../dom.js";
import { drawJobs } from "./overview.js";

const STATES = ["", "running", "waiting", "held", "stopped", "failed", "cancelled", "done"];
const FILTERS = ["name", "owner", "state", "group"];
const PAGE = 50;

export async function show(place, visit) {
  const wanted = Object.fromEntries(FILTERS.map((name) => [name, visit.query.get(name) ?? ""]));
  const from = visit.query.get("from");
  const list = h("div", {});
  const more = h("div", { class: "pager" });
  const { groups } = await get("groups");
  const choose = (name, choices) => h("label", {}, `${name} `, h("select", { name, "data-filter": true,
    onchange: (event) => { location.hash = address({ ...wanted, [name]: event.target.value }); } },
  choices.map((choice) => h("option", { value: choice, selected: choice === wanted[name] }, choice || "any"))));
  const type = (name) => h("label", {}, `${name} `, h("input", { type: "search", name, "data-filter": true, value: wanted[name],
    onchange: (event) => { location.hash = address({ ...wanted, [name]: event.target.value.trim() }); } }));
  put(place, h("div", { class: "head" }, h("h1", {}, "Jobs"), h("div", { class: "filters" },
    type("name"), type("owner"), choose("state", STATES), choose("group", ["", ...groups.map((group) => String(group.name))]))),
  h("section", { class: "panel" }, list, more));

  const look = async () => {
    const query = new URLSearchParams({ order: "newest", limit: String(PAGE) });
    for (const name of FILTERS) if (wanted[name]) query.set(name, wanted[name]);
    if (from) query.set("from", from);
    const page = await get(`jobs?${query}`);
    if (visit.isOver) return;
    swap(list, drawJobs(page.jobs, FILTERS.some((name) => wanted[name]) ? "no such jobs" : undefined));
    swap(more, from && h("a", { href: address(wanted) }, "newest"),
      page.next !== null && page.next !== undefined && h("a", { href: address({ ...wanted, from: page.next }) }, "older"));
  };
  return { title: "Jobs", look };
}

function address(wanted) {
  const query = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value !== "" && value !== undefined));
  return `#/jobs${String(query) ? `?${query}` : ""}`;
}
