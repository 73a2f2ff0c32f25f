// Follows the hub's events for as long as the tab is open, and tells whoever listens. An EventSource cannot send
// the token, so the stream is read by hand; the hub folds it to ten pieces a second.

import { open, Refused } from "./api.js";

const listeners = new Set();
let stop = null;
let lastId = null;

/** Hears every event; gives back how to stop hearing. */
export function listen(hear) {
  listeners.add(hear);
  return () => listeners.delete(hear);
}

/** `told` hears "live", "lost" and "over" as the connection comes and goes. */
export function start(told) {
  end();
  const control = new AbortController();
  stop = control;
  run(control.signal, told);
}

export function end() {
  stop?.abort();
  stop = null;
  lastId = null;
}

async function run(signal, told) {
  let wait = 500;
  while (!signal.aborted) {
    try {
      const headers = lastId ? { "last-event-id": lastId } : {};
      const answer = await open("events", { headers, signal });
      told("live");
      wait = 500;
      await read(answer.body.getReader());
    } catch (error) {
      if (signal.aborted || (error instanceof Refused && error.status === 401)) return;
    }
    if (signal.aborted) return;
    told("lost");
    // Everybody who watched a hub that stopped must not come back at the same moment.
    await new Promise((done) => setTimeout(done, wait * (0.75 + Math.random() / 2)));
    wait = Math.min(wait * 2, 10_000);
    tell({ kind: "gap" });
  }
}

async function read(reader) {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += decoder.decode(value, { stream: true });
    const pieces = rest.split("\n\n");
    rest = pieces.pop();
    pieces.forEach(take);
  }
}

function take(piece) {
  let data = "";
  for (const line of piece.split("\n")) {
    if (line.startsWith("id: ")) lastId = line.slice(4);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (data) tell(JSON.parse(data));
}

function tell(event) {
  for (const hear of listeners) hear(event);
}
