// The hub at a glance: what runs, how fast, who is there, what failed, what wants a person.

import { get, post } from "../api.js";
import { overTime } from "../charts.js";
import { attempt } from "../dialog.js";
import { act, h, put, swap } from "../dom.js";
import { ago, amount, bytes, clock, count, duration, outcome, rate, text } from "../format.js";
import { badge, card, panel, progress, progressWords, table, taskLink, totalOf } from "../parts.js";
import { Samples } from "../samples.js";
import { meet, workerLink } from "../workers.js";

export async function show(place, visit) {
  const cards = h("div", { class: "cards" });
  const warnings = h("div", {});
  const speed = h("div", {});
  const queue = h("div", {});
  const jobs = h("div", {});
  const groups = h("div", {});
  const failures = h("div", {});
  const past = new Samples();
  let span = "seconds";
  const choice = h("div", { class: "choice", role: "group", "aria-label": "time shown" },
    ["seconds", "minutes"].map((name) => h("button", { type: "button", class: "quiet", "data-do": "span",
      "data-span": name, "aria-pressed": String(name === span) }, name === "seconds" ? "10 min" : "24 h")));
  put(place, h("h1", {}, "Overview"), cards, warnings,
    h("div", { class: "two" },
      h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h2", {}, "Throughput"), choice), speed),
      panel("Queue", queue)),
    panel("Newest jobs", jobs),
    h("div", { class: "two" }, panel("Recent failures", failures), panel("Groups", groups)));

  const look = async () => {
    const [seen, known, newest] = await Promise.all([
      get("overview"), get("groups"), get("jobs?order=newest&limit=8"), past.catchUp()]);
    if (visit.isOver) return;
    await meet(seen.failures.slice(0, 10).map((one) => one.worker));
    swap(cards, drawCards(seen, known.groups, past));
    swap(warnings, drawWarnings(seen.warnings));
    const samples = past[span];
    const perSecond = span === "seconds" ? 1 : 1 / 60;
    const times = samples.map((sample) => sample.at_ms);
    const of = (name, factor = 1) => samples.map((sample) => sample[name] * factor);
    swap(speed, overTime({ label: "tasks ended per second", times, stacked: true, unit: rate, series: [
      { name: "done", state: "done", values: of("done", perSecond) },
      { name: "failed", state: "failed", values: of("failed", perSecond) },
      { name: "again", state: "delayed", values: of("again", perSecond) }] }));
    swap(queue, overTime({ label: "waiting and running tasks", times, series: [
      { name: "queued", state: "ready", values: of("queued") },
      { name: "running", state: "running", values: of("running") },
      { name: "waiting", state: "waiting", values: of("waiting") }] }));
    swap(jobs, drawJobs(newest.jobs));
    swap(groups, drawGroups(known.groups, visit.me));
    swap(failures, drawFailures(seen.failures));
  };
  act(place, {
    span: ({ span: wanted }) => {
      span = wanted;
      for (const button of choice.children) button.setAttribute("aria-pressed", String(button.dataset.span === span));
      look();
    },
    pause: ({ group }) => attempt(() => post(`groups/${encodeURIComponent(group)}/pause`), "paused").then(look),
    resume: ({ group }) => attempt(() => post(`groups/${encodeURIComponent(group)}/resume`), "goes on").then(look),
  });
  return { title: "Overview", look };
}

function drawCards(seen, groups, past) {
  const sum = (state) => groups.reduce((all, group) => all + group.counts[state], 0);
  const lately = past.seconds.slice(-10);
  const speed = lately.reduce((all, sample) => all + sample.done + sample.failed, 0) / Math.max(lately.length, 1);
  const { workers } = seen;
  const odd = [["draining", workers.draining], ["on hold", workers.on_hold], ["on probation", workers.on_probation],
    ["ejected", workers.ejected], ["away", workers.away], ["reserved", workers.reserved]].filter(([, number]) => number > 0);
  return [
    card("Running", count(sum("running")), `${rate(speed)} now`, "running"),
    card("Ready", count(sum("ready") + sum("delayed")), `${count(sum("waiting"))} wait for others`, "ready"),
    card("Done", count(sum("done")), "of remembered jobs", "done"),
    card("Failed", count(sum("failed")), `${count(sum("blocked"))} blocked by it`, "failed"),
    card("Workers", count(workers.connected), odd.map(([word, number]) => `${number} ${word}`).join(", ") || "all well"),
    card("Slots", `${count(workers.slots_used)} / ${count(workers.slots)}`,
      workers.slots_ahead ? `in use, ${count(workers.slots_ahead)} dispatched ahead` : "in use"),
    workers.memory_used_bytes > 0 && card("Memory", bytes(workers.memory_used_bytes), `given out of ${bytes(workers.memory_bytes)}`),
    (workers.resources ?? []).map((one) => card(text(one.name), `${amount(one.used)} / ${count(one.count)}`, "in use")),
    seen.disk && card("Disk", bytes(seen.disk.free_bytes), "free on the hub's disk"),
  ];
}

function drawWarnings(warnings) {
  if (warnings.length === 0) return [];
  return h("ul", { class: "warnings", "aria-label": "warnings" }, warnings.map((warning) => h("li", {}, "⚠ ",
    warning.worker !== undefined ? h("a", { href: `#/workers/${warning.worker}` }, warning.words)
      : warning.job !== undefined ? h("a", { href: `#/jobs/${warning.job}` }, warning.words)
        : warning.words)));
}

export function drawJobs(jobs, empty = "no jobs yet: `laboro submit -- COMMAND` makes one") {
  return table([["Job", "number"], "Name", "Owner", "State", ["Progress", "broad"], ["Tasks", "number"], "Submitted", "Took"],
    jobs.map((job) => [
      h("a", { href: `#/jobs/${job.job}` }, String(job.job)),
      h("a", { class: "name", href: `#/jobs/${job.job}` }, text(job.name) || "unnamed"),
      text(job.owner) || "–",
      badge(job.state),
      h("div", { class: "progress-cell" }, progress(job.counts), h("small", {}, progressWords(job.counts))),
      count(job.tasks),
      clock(job.submitted_ms),
      duration((job.ended_ms ?? Date.now()) - job.submitted_ms),
    ]), empty);
}

function drawGroups(groups, me) {
  return table(["Group", ["Running", "number"], ["Ready", "number"], ["Done", "number"], ["Failed", "number"], ""],
    groups.map((group) => {
      const name = text(group.name);
      const button = h("button", { type: "button", class: "quiet", "data-do": group.paused ? "resume" : "pause",
        "data-group": name }, group.paused ? "Resume" : "Pause");
      return [h("a", { href: `#/jobs?group=${encodeURIComponent(name)}` }, name), count(group.counts.running),
        count(group.counts.ready + group.counts.delayed), count(group.counts.done), count(group.counts.failed),
        me.role === "admin" ? button : group.paused ? "paused" : ""];
    }).filter((_, at) => totalOf(groups[at].counts) > 0 || groups.length < 20), "no groups yet");
}

function drawFailures(failures) {
  return table(["Task", "How", "Worker", "When", ["After", "number"]], failures.slice(0, 10).map((one) => [
    taskLink(one.job, one.task), outcome(one.outcome), workerLink(one.worker),
    ago(one.started_ms + one.took_ms), duration(one.took_ms)]), "no failures since the hub started");
}
