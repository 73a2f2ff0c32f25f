// Which page is shown, and that it stays true: pages are loaded by the part of the address after #, told when
// something happened, and asked to look again at most twice a second.

import { get, token, whenDenied } from "./api.js";
import { h, put, swap } from "./dom.js";
import * as events from "./events.js";
import { hear } from "./keys.js";
import { dress } from "./theme.js";
import * as brokers from "./pages/brokers.js";
import * as doors from "./pages/doors.js";
import * as graph from "./pages/graph.js";
import * as job from "./pages/job.js";
import * as jobs from "./pages/jobs.js";
import * as overview from "./pages/overview.js";
import * as signin from "./pages/signin.js";
import * as task from "./pages/task.js";
import * as tasks from "./pages/tasks.js";
import * as worker from "./pages/worker.js";
import * as workers from "./pages/workers.js";

const ROUTES = [
  [/^$/, overview],
  [/^jobs$/, jobs],
  [/^jobs\/(\d+)$/, job],
  [/^jobs\/(\d+)\/tasks$/, tasks],
  [/^jobs\/(\d+)\/graph$/, graph],
  [/^jobs\/(\d+)\/tasks\/(\d+)$/, task],
  [/^workers$/, workers],
  [/^workers\/(\d+)$/, worker],
  [/^doors$/, doors],
  [/^brokers$/, brokers],
];

const NAV = [["", "Overview"], ["jobs", "Jobs"], ["workers", "Workers"], ["doors", "Doors"], ["brokers", "Brokers"]];

const LOOK_AGAIN_MS = 500;
const LOOK_ANYWAY_MS = 5000;

const main = document.getElementById("main");
const state = document.getElementById("link");
let me = null;
let current = null;
/** Why somebody who had a token has to sign in. */
let refusal = null;

/** A page is told these: the parts of its address, what is after the ?, who looks, and when it is over. */
class Visit {
  constructor(parts, query) {
    this.parts = parts;
    this.query = query;
    this.me = me;
    this.control = new AbortController();
    this.signal = this.control.signal;
  }

  get isOver() {
    return this.signal.aborted;
  }

  /** Called when the page is left. */
  atEnd(done) {
    this.signal.addEventListener("abort", done);
  }
}

async function show() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  current?.visit.control.abort();
  current = null;
  if (!me) return ask();
  const route = ROUTES.find(([pattern]) => pattern.test(path));
  drawNav(path);
  if (!route) {
    main.replaceChildren(h("p", { class: "empty" }, "There is no such page."));
    return;
  }
  const visit = new Visit(route[0].exec(path).slice(1).map(Number), new URLSearchParams(query ?? ""));
  const place = h("div", { class: "page" });
  main.replaceChildren(place);
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
  const mine = { visit, isDue: true, isLooking: false, isWanted: () => true, look: async () => {} };
  current = mine;
  try {
    const page = await route[1].show(place, visit);
    if (visit.isOver) return;
    document.title = page.title ? `${page.title} · Laboro` : "Laboro";
    mine.look = page.look;
    mine.isWanted = page.isWanted ?? mine.isWanted;
    await lookAgain(mine);
  } catch (error) {
    if (!visit.isOver) trouble(place, error);
  }
}

async function lookAgain(page) {
  if (page.isLooking || page.visit.isOver) return;
  page.isLooking = true;
  page.isDue = false;
  const began = Date.now();
  try {
    await page.look();
    main.querySelector(".trouble")?.remove();
  } catch (error) {
    if (!page.visit.isOver && error.name !== "AbortError") trouble(main.firstElementChild, error);
  } finally {
    page.isLooking = false;
    page.looked = Date.now();
    // Where a look takes long, be it the hub, the way or this browser, looks are further apart.
    page.restsUntil = page.looked + Math.min((page.looked - began) * 4, LOOK_ANYWAY_MS);
  }
}

function trouble(place, error) {
  const words = error instanceof TypeError && /fetch|network/i.test(error.message)
    ? "The hub does not answer." : error.message;
  main.querySelector(".trouble")?.remove();
  place.prepend(h("p", { class: "trouble", role: "alert" }, words, error.hint && h("small", {}, ` ${error.hint}`)));
}

/** The clock of all pages: those with news look again, the others now and then; nobody looks at a hidden tab. */
setInterval(() => {
  if (!current || document.hidden) return;
  const now = Date.now();
  const isTime = current.isDue ? now >= (current.restsUntil ?? 0) : now - (current.looked ?? 0) > LOOK_ANYWAY_MS;
  if (isTime) lookAgain(current);
}, LOOK_AGAIN_MS);

events.listen((event) => {
  if (current && (event.kind === "gap" || current.isWanted(event))) current.isDue = true;
});

function drawNav(path) {
  const here = path.split("/")[0];
  swap(document.getElementById("nav"), NAV.map(([to, name]) =>
    h("a", { href: `#/${to}`, "aria-current": to === here ? "page" : null }, name)));
}

async function enter() {
  me = await get("me", { isTrial: true });
  document.getElementById("leave").hidden = false;
  events.start((how) => {
    state.textContent = how === "live" ? "live" : "reconnecting…";
    state.className = `link ${how}`;
  });
}

function leave() {
  refusal = null;
  signOut();
}

function signOut() {
  token.drop();
  me = null;
  events.end();
  state.textContent = "";
  document.getElementById("leave").hidden = true;
  document.getElementById("nav").replaceChildren();
  show();
}

function ask() {
  document.title = "Sign in · Laboro";
  const place = h("div", { class: "page" });
  main.replaceChildren(place);
  put(place, signin.form(refusal, async (secret) => {
    token.set(secret);
    try {
      await enter();
    } catch (error) {
      token.drop();
      throw error;
    }
    refusal = null;
    await show();
  }));
  place.querySelector("input")?.focus();
}

/** A link made by `laboro dashboard` brings the token along, in the part of the address that is never sent. */
function takeTokenFromLink() {
  const brought = /^#token=([\w.~+/=-]+)$/.exec(location.hash);
  if (brought) {
    token.set(brought[1]);
    history.replaceState(null, "", "#/");
  }
}

function denied(error) {
  refusal = signin.why(error);
  token.drop();
}

async function arrive() {
  takeTokenFromLink();
  refusal = null;
  if (token.get()) await enter().catch(denied);
  await show();
}

dress(document.getElementById("theme"));
hear();
whenDenied((error) => {
  refusal = signin.why(error);
  signOut();
});
document.getElementById("leave").addEventListener("click", leave);
window.addEventListener("hashchange", () => (location.hash.startsWith("#token=") ? arrive() : show()));
await arrive();
