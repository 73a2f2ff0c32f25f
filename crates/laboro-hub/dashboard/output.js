// What a task prints, as it comes. The end of it is shown first, then what is added; a page keeps the last part only.

import { open } from "./api.js";
import { h } from "./dom.js";

const SHOWN_MAX = 256 * 1024;
const END_BYTES = 64 * 1024;

/** An element that follows one attempt until `stop` is called. */
export function follow(job, task, stream, attempt) {
  const control = new AbortController();
  const text = document.createTextNode("");
  const pre = h("pre", { class: "output", tabindex: "0", role: "group", "aria-label": "output" }, text);
  const status = h("p", { class: "empty", role: "status" }, "reading…");
  run({ path: `jobs/${job}/tasks/${task}/output`, stream, attempt, signal: control.signal, text, pre, status })
    .catch((error) => {
      if (!control.signal.aborted) status.textContent = error.message;
    });
  return { element: h("div", {}, pre, status), stop: () => control.abort() };
}

async function run({ path, stream, attempt, signal, text, pre, status }) {
  const which = `stream=${stream}${attempt ? `&attempt=${attempt}` : ""}`;
  const decoder = new TextDecoder();
  const show = printer(text, pre);
  const end = await lastPart(`${path}?${which}`, signal);
  if (end.from > 0) show(`… ${end.from} bytes before this are not shown\n`);
  show(decoder.decode(end.bytes, { stream: true }));
  status.textContent = "following…";
  const query = `${path}?stream=${stream}&follow=1&from=${end.from + end.bytes.length}&attempt=${end.attempt ?? attempt ?? ""}`;
  const answer = await open(query.replace(/&attempt=$/, ""), { signal });
  const reader = answer.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    show(decoder.decode(value, { stream: true }));
  }
  show(decoder.decode());
  status.textContent = text.data === "" ? "it printed nothing" : "the end";
}

async function lastPart(path, signal) {
  const answer = await open(path, { signal, headers: { range: `bytes=-${END_BYTES}` } });
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const range = /bytes (\d+)-/.exec(answer.headers.get("content-range") ?? "");
  return { bytes, from: range ? Number(range[1]) : 0, attempt: bytes.length ? answer.headers.get("laboro-attempt") : null };
}

/** Adds text at most once a frame, and stays at the end for whoever reads there. */
function printer(text, pre) {
  let coming = "";
  let isDue = false;
  return (piece) => {
    coming += plain(piece);
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      const isAtEnd = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 40;
      text.appendData(coming);
      coming = "";
      if (text.length > SHOWN_MAX) text.deleteData(0, text.length - SHOWN_MAX);
      if (isAtEnd) pre.scrollTop = pre.scrollHeight;
    });
  };
}

/** Colours and cursor moves mean nothing here. */
function plain(piece) {
  // eslint-disable-next-line no-control-regex
  return piece.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "");
}

/** The last bytes of what a task said on standard error, once. */
export async function lastWords(job, task, most = 2000) {
  const path = `jobs/${job}/tasks/${task}/output?stream=err`;
  try {
    const answer = await open(path, { headers: { range: `bytes=-${most}` } });
    return plain(await answer.text()) || "nothing on standard error";
  } catch (error) {
    return error.message;
  }
}
