// Numbers, times and words as people read them. Nothing here touches the page.

/** Names and commands are text, or bytes that are none. */
export function text(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(text).join(" ");
  if (typeof value === "object" && typeof value.base64 === "string") return `base64:${value.base64}`;
  return String(value);
}

/** A command as it could be typed: a string is a line for the shell, a list is words. */
export function command(value) {
  if (!Array.isArray(value)) return text(value);
  return value.map(text).map((word) => (/^[\w@%+=:,./{}-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

export function count(number) {
  if (number < 10_000) return String(number ?? 0);
  if (number < 1_000_000) return `${(number / 1000).toFixed(number < 100_000 ? 1 : 0)}k`;
  return `${(number / 1e6).toFixed(number < 1e8 ? 2 : 0)}M`;
}

/** With the decimals that it has. */
export function amount(number) {
  return String(Math.round(number * 10000) / 10000);
}

export function rate(perSecond) {
  if (perSecond >= 100) return `${count(Math.round(perSecond))}/s`;
  if (perSecond >= 1) return `${Number(perSecond.toFixed(1))}/s`;
  if (perSecond * 60 >= 1) return `${(perSecond * 60).toFixed(1)}/min`;
  return perSecond > 0 ? `${(perSecond * 3600).toFixed(1)}/h` : "0/s";
}

export function duration(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${pad(Math.floor(seconds % 60))} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${pad(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

function pad(number) {
  return String(number).padStart(2, "0");
}

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (number >= 1024 && at < units.length - 1) {
    number /= 1024;
    at += 1;
  }
  return `${at === 0 || number >= 100 ? Math.round(number) : number.toFixed(1)} ${units[at]}`;
}

/** The time of day, with the date where that is not today's. */
export function clock(ms) {
  if (!ms) return "–";
  const then = new Date(ms);
  const time = `${pad(then.getHours())}:${pad(then.getMinutes())}:${pad(then.getSeconds())}`;
  const isToday = then.toDateString() === new Date().toDateString();
  return isToday ? time : `${then.getFullYear()}-${pad(then.getMonth() + 1)}-${pad(then.getDate())} ${time}`;
}

export function ago(ms, now = Date.now()) {
  if (!ms) return "never";
  const passed = now - ms;
  return passed < 2000 ? "just now" : `${duration(passed)} ago`;
}

export function outcome(value) {
  if (!value) return "–";
  switch (value.kind) {
    case "success": return "success";
    case "exit": return `exit code ${value.code}`;
    case "signal": return `signal ${value.code}`;
    case "timed_out": return "timed out";
    case "memory": return "too much memory";
    default: return text(value.kind);
  }
}

export function percent(part, whole) {
  if (!whole) return "0%";
  const share = (part / whole) * 100;
  return share > 0 && share < 1 ? "<1%" : share > 99 && share < 100 ? ">99%" : `${Math.round(share)}%`;
}
