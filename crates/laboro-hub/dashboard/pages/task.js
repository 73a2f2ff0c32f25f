// One task: where it stands and why, its attempts, what it runs, and what it prints as it prints it.

import { get, getIfThere, post } from "../api.js";
import { agree, attempt as tried } from "../dialog.js";
import { act, h, put, swap } from "../dom.js";
import { bytes, clock, command, duration, outcome, text } from "../format.js";
import { follow } from "../output.js";
import { badge, panel, table, taskLink } from "../parts.js";
import { meet, workerLink } from "../workers.js";

const OVER = ["done", "failed", "cancelled"];

export async function show(place, visit) {
  const [job, number] = visit.parts;
  const path = `jobs/${job}/tasks/${number}`;
  const [head, why, attempts, work, links] = Array.from({ length: 5 }, () => h("div", {}));
  const buttons = visit.me.role === "watch" ? null : h("div", { class: "buttons" },
    [["hold", "Hold"], ["release", "Release"], ["retry", "Retry"], ["cancel", "Cancel", "danger"]].map(
      ([name, words, kind]) => h("button", { type: "button", class: kind ?? "", "data-do": name }, words)));
  const stream = h("select", { name: "stream", "aria-label": "stream" },
    [["both", "both"], ["out", "standard output"], ["err", "standard error"]].map(([value, words]) =>
      h("option", { value }, words)));
  const which = h("select", { name: "attempt", "aria-label": "attempt" }, h("option", { value: "" }, "last attempt"));
  const output = h("div", {});
  put(place, h("div", { class: "head" }, head, buttons), why,
    h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h2", {}, "Output"),
      h("div", { class: "filters" }, which, stream)), output),
    panel("Attempts", attempts),
    h("div", { class: "two" }, panel("What it runs", work), panel("Dependencies", links)));

  let following = null;
  let followed = "";
  const reopen = () => {
    following?.stop();
    following = follow(job, number, stream.value, which.value);
    output.replaceChildren(following.element);
  };
  stream.addEventListener("change", reopen);
  which.addEventListener("change", reopen);
  visit.atEnd(() => following?.stop());

  const look = async () => {
    const [task, past] = await Promise.all([get(path), getIfThere(`jobs/${job}/history`)]);
    const explained = OVER.includes(task.state) || task.state === "running" ? null : await get(`${path}/explain`);
    const runs = task.attempts.length > 0 ? task.attempts : remembered(past, number);
    await meet(runs.map((one) => one.worker));
    if (visit.isOver) return;
    swap(head, h("h1", {}, text(task.label) || text(task.name) || `task ${number}`, " ", badge(task.state),
      h("small", {}, ` ${job}/${number} of job `, h("a", { href: `#/jobs/${job}` }, String(job)))));
    enable(buttons, task);
    swap(why, explained && h("p", { class: "why" }, h("b", {}, "Why it does not run: "), explained.explanation),
      task.message && h("p", { class: "trouble" }, task.message),
      task.output_lost && h("p", { class: "trouble" }, "Some of its output is lost: the hub could not write it."));
    swap(attempts, drawAttempts(runs));
    swap(work, drawWork(task.work ?? {}, task));
    swap(links, drawLinks("after", task.after), drawLinks("before", task.before));
    chooseAttempts(which, task);
    // A new attempt has an output of its own.
    const attemptNow = `${attemptsMade(task)}`;
    if (!following || (attemptNow !== followed && which.value === "")) reopen();
    followed = attemptNow;
  };
  const change = (what, done) => tried(() => post(`jobs/${job}/${what}`, { tasks: String(number) }), done).then(look);
  act(place, {
    hold: () => change("hold", "held"),
    release: () => change("release", "rerunning"),
    retry: () => change("retry", "runs again").then(reopen),
    cancel: async () => {
      if (await agree(`Cancel task ${number}?`, "A running task is ended.", "Cancel the task")) {
        change("cancel", "cancelled");
      }
    },
  });
  return { title: `Task ${job}/${number}`, look, isWanted: (event) => event.job === job &&
    (event.first === undefined || (event.first <= number && number <= event.last)) };
}

/** Elements of arrays keep no attempts of their own; the hub's history may know them. */
function remembered(past, number) {
  if (!past) return [];
  const known = new Map();
  for (const one of [...past.spans, ...past.slowest, ...past.failures]) {
    if (one.task === number) {
      known.set(one.started_ms, { worker: one.worker, started_ms: one.started_ms,
        ended_ms: one.started_ms + one.took_ms, outcome: one.outcome });
    }
  }
  return [...known.values()].sort((a, b) => a.started_ms - b.started_ms);
}

function enable(buttons, task) {
  if (!buttons) return;
  const isOver = OVER.includes(task.state);
  const can = { hold: !isOver && task.state !== "held" && task.state !== "running", release: task.state === "held",
    retry: task.state === "failed" || task.state === "cancelled", cancel: !isOver };
  for (const button of buttons.children) button.disabled = !can[button.dataset.do];
}

function drawAttempts(runs) {
  // What an attempt used is told by some workers only.
  const isUsedKnown = runs.some((one) => one.used);
  const used = ({ used: of }) => (of ? [duration((of.user_us + of.system_us) / 1000), bytes(of.peak_memory_bytes)] : ["", ""]);
  const columns = [["", "number"], "Worker", "Started", "Ended", ["Took", "number"], "How"];
  if (isUsedKnown) columns.push(["Processor", "number"], ["Memory", "number"]);
  return table(columns, runs.map((one, at) => [
    String(one.attempt || at + 1), workerLink(one.worker), clock(one.started_ms), one.ended_ms ? clock(one.ended_ms) : "",
    duration((one.ended_ms ?? Date.now()) - one.started_ms), one.outcome ? outcome(one.outcome) : "runs",
    ...(isUsedKnown ? used(one) : [])]), "no history");
}

function drawWork(work, task) {
  const rows = [];
  const row = (name, value) => rows.push(h("dt", {}, name), h("dd", {}, value));
  const code = (value) => h("code", {}, value);
  if (work.command) row("command", code(command(work.command)));
  if (work.script !== undefined) row(`script ${work.script_kind ?? ""}`, h("pre", { class: "output short" }, text(work.script)));
  if (!work.command && work.script === undefined) row("work", "its worker knows the name");
  if (work.value !== undefined) row("value", code(text(work.value)));
  if (work.dir) row("directory", code(text(work.dir)));
  if (work.stdin?.file) row("stdin file", code(text(work.stdin.file)));
  if (work.output) row("output file", code(text(work.output)));
  if (work.stdout) row("stdout file", code(text(work.stdout)));
  if (work.stderr) row("stderr file", code(text(work.stderr)));
  if (work.nice !== undefined) row("nice", String(work.nice));
  row("needs", [`${work.slots ?? 1} slot${work.slots === 1 ? "" : "s"}`,
    work.memory_bytes ? `, ${bytes(work.memory_bytes)}` : "",
    Object.entries(work.resources ?? {}).map(([name, number]) => `, ${number} ${name}`),
    (work.tags ?? []).map((tag) => `, ${text(tag)}`)]);
  row("priority", String(task.priority));
  row("attempts", `${task.failed_attempts} failed, ${task.lost_attempts} lost, ${work.attempts ?? 1} allowed`);
  if (work.timeout_ms) row("time limit", duration(work.timeout_ms));
  const variables = Object.entries(work.env ?? {});
  return [h("dl", { class: "facts" }, rows), variables.length > 0 && h("details", {},
    h("summary", {}, `environment (${variables.length})`),
    table(["Name", "Value"], variables.map(([name, value]) => [code(name), code(text(value))])))];
}

function drawLinks(title, list) {
  const shown = list.map((one) => {
    if (one.task !== undefined) return taskLink(one.job, one.task);
    if (one.array !== undefined) return h("a", { href: `#/jobs/${one.job}` }, `${one.job}/${one.array}…`);
    return text(one);
  });
  const words = title === "after" ? "It waits for" : "Waiting for it";
  return h("p", {}, h("b", {}, `${words}: `), shown.length === 0 ? "none known" : shown.flatMap((one, at) => (at ? [", ", one] : [one])));
}

/** With the one that runs or comes next. What a person has tried again is counted on. */
function attemptsMade(task) {
  const last = task.attempts.at(-1)?.attempt ?? 0;
  return Math.max(task.failed_attempts + task.lost_attempts + 1, last);
}

function chooseAttempts(select, task) {
  const made = Math.min(attemptsMade(task), 100);
  while (select.options.length <= made && made > 1) {
    const number = String(select.options.length);
    select.append(h("option", { value: number }, `attempt ${number}`));
  }
  select.hidden = made < 2;
}
