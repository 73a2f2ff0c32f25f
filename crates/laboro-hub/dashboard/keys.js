// The keyboard: g and a letter goes somewhere, j and k walk over rows, Enter opens one, / goes to the filter.

import { h } from "./dom.js";

const PLACES = { o: "#/", j: "#/jobs", w: "#/workers", d: "#/doors", b: "#/brokers" };
const HELP = [
  ["g o", "overview"], ["g j", "jobs"], ["g w", "workers"], ["g d", "doors"], ["g b", "brokers"],
  ["j k", "next and previous row"], ["Enter", "open the row"], ["/", "to the filter"], ["?", "this list"],
];

let isGoing = false;

export function hear() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, dialog")) return;
    if (isGoing) {
      isGoing = false;
      if (PLACES[event.key]) location.hash = PLACES[event.key];
      return;
    }
    const done = DOERS[event.key];
    if (done) {
      event.preventDefault();
      done();
    }
  });
}

const DOERS = {
  g: () => { isGoing = true; },
  j: () => walk(1),
  k: () => walk(-1),
  "/": () => document.querySelector("main [data-filter]")?.focus(),
  "?": help,
};

/** Rows are walked by their first link, which Enter then opens. */
function walk(step) {
  const links = [...document.querySelectorAll("main tbody tr")].map((row) => row.querySelector("a")).filter(Boolean);
  if (links.length === 0) return;
  const at = links.indexOf(document.activeElement);
  links[at === -1 ? (step > 0 ? 0 : links.length - 1) : Math.max(0, Math.min(links.length - 1, at + step))].focus();
}

function help() {
  const dialog = h("dialog", { "aria-label": "Keys" }, h("form", { method: "dialog" }, h("h2", {}, "Keys"),
    h("dl", { class: "keys" }, HELP.map(([key, words]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, words)])),
    h("div", { class: "dialog-end" }, h("button", { type: "submit" }, "Close"))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
