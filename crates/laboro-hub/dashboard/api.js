// Asks the hub. The token is kept for this tab only and sent only as a header: the browser never sends it by itself,
// so no other page can use it, and no other port of this machine gets to see it as it would a cookie.

const BASE = "/api/v1/";
const KEY = "laboro-token";

/** A no from the hub, in its words. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem?.detail || problem?.title || `the hub answered ${status}`);
    this.status = status;
    this.reason = problem?.reason;
    this.hint = problem?.hint;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (secret) => sessionStorage.setItem(KEY, secret),
  drop: () => sessionStorage.removeItem(KEY),
};

let onDenied = () => {};

/** Who is told when the token is not good any more. */
export function whenDenied(told) {
  onDenied = told;
}

/** The answer as it comes, once it is known to be a good one. */
export async function open(path, options = {}) {
  const headers = { authorization: `Bearer ${token.get() ?? ""}`, ...options.headers };
  const answer = await fetch(BASE + path, {
    ...options, headers, cache: "no-store", credentials: "omit", redirect: "error",
  });
  if (answer.ok) return answer;
  const refused = new Refused(answer.status, await answer.json().catch(() => undefined));
  if (answer.status === 401 && !options.isTrial) onDenied(refused);
  throw refused;
}

export async function get(path, options) {
  return (await open(path, options)).json();
}

export async function post(path, body = {}) {
  const headers = { "content-type": "application/json" };
  return (await open(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

export async function remove(path) {
  return (await open(path, { method: "DELETE" })).json();
}

let routes = null;

/** Whether this hub has it: one of another version may not. */
export async function has(path) {
  routes ??= get("openapi.json").then((document) => Object.keys(document.paths), (error) => {
    routes = null;
    throw error;
  });
  return (await routes).includes(BASE + path);
}

/** Something that may not be there. */
export async function getIfThere(path, options) {
  try {
    return await get(path, options);
  } catch (error) {
    if (error instanceof Refused && (error.status === 404 || error.status === 403)) return null;
    throw error;
  }
}
