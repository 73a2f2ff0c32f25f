// One job: how far it is, how fast, where it ran, what failed, and what can be done about it.

import { get, getIfThere, post } from "../api.js";
import { histogram, overTime } from "../charts.js";
import { agree, attempt } from "../dialog.js";
import { act, h, put, swap } from "../dom.js";
import { clock, command, count, duration, outcome, percent, rate, text } from "../format.js";
import { lastWords } from "../output.js";
import { badge, card, finishedOf, legend, panel, progress, table, taskLink, totalOf } from "../parts.js";
import { timeline } from "../timeline.js";
import { meet, workerLink } from "../workers.js";

const FAILED_SHOWN = 10;
/** Whose last words are read without being asked for. */
const FAILED_OPEN = 2;

export async function show(place, visit) {
  const [number] = visit.parts;
  const parts = Object.fromEntries(["head", "bar", "cards", "speed", "histogram", "timeline", "codes", "failed",
    "workers", "slowest"].map((name) => [name, h("div", {})]));
  const buttons = visit.me.role === "watch" ? null : h("div", { class: "buttons" },
    [["hold", "Hold"], ["release", "Release"], ["retry", "Retry failed"], ["cancel", "Cancel", "danger"]].map(
      ([name, words, kind]) => h("button", { type: "button", class: kind ?? "", "data-do": name }, words)));
  const tabs = jobTabs(number, "");
  put(place, h("div", { class: "head" }, parts.head, buttons), tabs, parts.bar, parts.cards,
    h("div", { class: "two" }, panel("Throughput", parts.speed), panel("Durations", parts.histogram)),
    panel("Timeline", parts.timeline),
    panel("Failed tasks", parts.failed),
    h("div", { class: "two" }, panel("How tasks ended", parts.codes), panel("Slowest", parts.slowest)),
    panel("Workers", parts.workers));

  // A picture of a thousand attempts is large and changes slowly.
  let past = null;
  let pastAt = 0;
  const remember = async () => {
    const isFresh = past && Date.now() - pastAt < (past.spans.length > 200 ? 3000 : 0);
    if (isFresh) return;
    past = await getIfThere(`jobs/${number}/history`);
    pastAt = Date.now();
  };
  let first = null;
  const look = async () => {
    const [job, running, failed] = await Promise.all([
      get(`jobs/${number}`), get(`jobs/${number}/tasks?state=running&limit=100`),
      get(`jobs/${number}/tasks?state=failed&limit=${FAILED_SHOWN}`), remember()]);
    const runs = running.tasks.flatMap((task) => {
      const last = task.attempts.at(-1);
      return last ? [{ task: task.task, worker: last.worker, started_ms: last.started_ms }] : [];
    });
    if (past) {
      await meet([...past.workers, ...runs, ...past.slowest].map((one) => one.worker));
    }
    // What it runs does not change.
    first ??= await getIfThere(`jobs/${number}/tasks/1`);
    const reason = await whyNothingRuns(job);
    if (visit.isOver) return;
    swap(parts.head, drawHead(job, first));
    enable(buttons, job);
    swap(parts.bar, progress(job.counts), legend(job.counts),
      reason && h("p", { class: "why" }, h("b", {}, "Why nothing runs: "), reason));
    swap(parts.cards, h("div", { class: "cards" }, drawCards(job, past)));
    swap(parts.codes, drawEnds(job));
    swap(parts.failed, drawFailed(job, failed.tasks, past));
    // A part that is folded out already may have become that of another task.
    parts.failed.querySelectorAll("details[open]").forEach((details) => readWords(number, details));
    if (!past) return;
    swap(parts.speed, drawSpeed(past.rate, job));
    swap(parts.histogram, histogram(past.durations), drawQuantiles(past.durations));
    swap(parts.timeline, timeline(number, past.spans, runs, Date.now(), past.every),
      !past.whole && h("p", { class: "empty" }, past.started
        ? `the hub remembers this job since ${clock(past.since_ms)}` : "the hub has no history of this job"));
    swap(parts.workers, drawWorkers(past));
    swap(parts.slowest, table(["Task", "Worker", ["Took", "number"]], past.slowest.slice(0, 10).map((one) =>
      [taskLink(number, one.task), workerLink(one.worker), duration(one.took_ms)])));
  };
  const change = (what, done) => attempt(() => post(`jobs/${number}/${what}`), done).then(look);
  const changed = (word) => (answer) => `${count(answer.tasks)} tasks ${word}`;
  act(place, {
    hold: () => change("hold", changed("held")),
    release: () => change("release", changed("rerunning")),
    retry: () => change("retry", changed("run again")),
    cancel: async () => {
      const words = "Running tasks are ended, and waiting ones will not start.";
      if (await agree(`Cancel job ${number}?`, words, "Cancel the job")) change("cancel", changed("cancelled"));
    },
  });
  place.addEventListener("toggle", (event) => readWords(number, event.target), true);
  return { title: `Job ${number}`, look, isWanted: (event) => event.job === number };
}

export function jobTabs(number, here) {
  const tabs = [["", "Summary"], ["/tasks", "Tasks"], ["/graph", "Graph"]];
  return h("nav", { class: "tabs", "aria-label": "of this job" }, tabs.map(([to, name]) =>
    h("a", { href: `#/jobs/${number}${to}`, "aria-current": to === here ? "page" : null }, name)));
}

function drawHead(job, first) {
  return [h("h1", {}, text(job.name) || `job ${job.job}`, " ", badge(job.state),
    h("small", {}, ` #${job.job} in ${text(job.group)}`, job.owner ? ` by ${text(job.owner)}` : "", job.open ? ", open" : "")), drawCommand(job, first?.work)];
}

/** In the hub's words, for the first task that could be next. */
async function whyNothingRuns(job) {
  if (job.ended_ms || job.counts.running) return null;
  const state = ["ready", "delayed", "held", "blocked", "waiting"].find((one) => job.counts[one]);
  if (!state) return null;
  const { tasks } = await get(`jobs/${job.job}/tasks?state=${state}&limit=1`);
  const explained = tasks[0] && await getIfThere(`jobs/${job.job}/tasks/${tasks[0].task}/explain`);
  return explained?.explanation;
}

/** As it was typed; of tasks that have commands of their own, the first one's. */
function drawCommand(job, work) {
  if (!work?.command) return null;
  const others = work.value === undefined ? totalOf(job.counts) - 1 : 0;
  return h("p", { class: "command" }, h("code", {}, command(work.command)),
    others > 0 && h("small", {}, ` and ${count(others)} more`));
}

/** Only what would do something can be pressed. */
function enable(buttons, job) {
  if (!buttons) return;
  const { counts } = job;
  const isOver = job.ended_ms !== null && job.ended_ms !== undefined;
  const can = {
    hold: !isOver && !job.held,
    release: job.held || job.stopped || counts.held > 0,
    retry: counts.failed > 0,
    cancel: !isOver,
  };
  for (const button of buttons.children) button.disabled = !can[button.dataset.do];
}

function drawCards(job, past) {
  const total = totalOf(job.counts);
  const finished = finishedOf(job.counts);
  const speed = past ? recentSpeed(past.rate) : 0;
  const left = total - finished;
  const isOver = Boolean(job.ended_ms);
  const guess = left > 0 && speed > 0 ? duration((left / speed) * 1000) : "–";
  return [
    card("Finished", percent(finished, total), `${count(finished)} of ${count(total)}`),
    isOver ? card("Took", duration(job.ended_ms - job.submitted_ms), `ended ${clock(job.ended_ms)}`)
      : card("Time left", guess, `${duration(Date.now() - job.submitted_ms)} since ${clock(job.submitted_ms)}`),
    !isOver && card("Speed", rate(speed), "lately"),
    past && past.durations.count > 0 && card("Typical task", duration(past.durations.p50_ms),
      `90% within ${duration(past.durations.p90_ms)}`),
    job.forgotten_ms && card("Kept until", clock(job.forgotten_ms), "with its output, or until newer jobs take its place"),
    past && (past.again > 0 || past.lost > 0) && card("Again", count(past.again), `${count(past.lost)} lost with a worker`),
  ];
}

/** Tasks a second over the last few steps. */
function recentSpeed(steps) {
  const ended = steps.done.map((done, at) => done + steps.failed[at]);
  if (ended.length === 0) return 0;
  const since = Math.max(0, ended.length - 10);
  const passed = Math.max(1000, Math.min(Date.now(), steps.start_ms + ended.length * steps.width_ms) -
    (steps.start_ms + since * steps.width_ms));
  return (ended.slice(since).reduce((sum, number) => sum + number, 0) / passed) * 1000;
}

function drawSpeed(steps, job) {
  const done = [...steps.done];
  const failed = [...steps.failed];
  // Up to now, or to the end: a job that stands still shows it.
  const until = Math.min(job.ended_ms ?? Date.now(), steps.start_ms + 120 * steps.width_ms);
  while (steps.start_ms + done.length * steps.width_ms < until && done.length < 120) {
    done.push(0);
    failed.push(0);
  }
  const factor = 1000 / (steps.width_ms || 1000);
  return overTime({ label: "tasks ended per second", stacked: true, unit: rate,
    times: done.map((_, at) => steps.start_ms + at * steps.width_ms), series: [
      { name: "done", state: "done", values: done.map((number) => number * factor) },
      { name: "failed", state: "failed", values: failed.map((number) => number * factor) }] });
}

function drawQuantiles(durations) {
  if (durations.count === 0) return null;
  return h("p", { class: "note" }, `half within ${duration(durations.p50_ms)}, 90% within ${duration(durations.p90_ms)}, ` +
    `99% within ${duration(durations.p99_ms)}; ${duration(durations.min_ms)} to ${duration(durations.max_ms)}`);
}

function drawEnds(job) {
  const ends = [["success", job.counts.done], ...job.failures.map((one) => [outcome(one.outcome), one.count])];
  if (job.counts.cancelled) ends.push(["cancelled", job.counts.cancelled]);
  return table(["How", ["Tasks", "number"]], ends.filter(([, number]) => number > 0).map(([how, number]) =>
    [how, count(number)]), "nothing has ended yet");
}

function drawFailed(job, tasks, past) {
  if (tasks.length === 0) return h("p", { class: "empty" }, "none");
  const known = new Map((past?.failures ?? []).map((one) => [one.task, one]));
  const shown = tasks.map((task, at) => {
    const end = task.attempts.at(-1) ?? known.get(task.task);
    return h("li", {}, h("div", { class: "row" }, badge("failed"), taskLink(job.job, task.task, text(task.label) || text(task.name) || String(task.task)),
      h("span", {}, outcome(end?.outcome)), end && h("span", {}, "at ", workerLink(end.worker)),
      task.message && h("span", { class: "note" }, task.message)),
    h("details", { "data-task": String(task.task), open: at < FAILED_OPEN }, h("summary", {}, "last words"),
      h("pre", { class: "output short", "data-keep": `words-${task.task}-${task.failed_attempts}` })));
  });
  const rest = job.counts.failed - tasks.length;
  return [h("ul", { class: "failed" }, shown), rest > 0 && h("p", {},
    h("a", { href: `#/jobs/${job.job}/tasks?state=failed` }, `${count(rest)} more`))];
}

/** Read when somebody looks, not before. */
async function readWords(job, details) {
  const place = details.querySelector?.("pre[data-keep]");
  if (!details.open || !place || place.textContent) return;
  place.textContent = "reading…";
  place.textContent = await lastWords(job, Number(details.dataset.task));
}

function drawWorkers(past) {
  const all = past.workers.reduce((sum, one) => sum + one.busy_ms, 0);
  const rows = [...past.workers].sort((a, b) => b.busy_ms - a.busy_ms).slice(0, 50);
  return table(["Worker", ["Done", "number"], ["Failed", "number"], ["Busy", "number"], ["Share", "number"],
    ["A task", "number"]], rows.map((one) => [workerLink(one.worker), count(one.done), count(one.failed),
    duration(one.busy_ms), percent(one.busy_ms, all), duration(one.busy_ms / Math.max(1, one.done + one.failed))]),
  "nobody yet");
}
