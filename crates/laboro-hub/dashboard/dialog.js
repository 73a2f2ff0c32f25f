// Asks a person before something is ended, and says how it went.

import { h, put } from "./dom.js";

/** True when the person agrees. `words` says what will happen. */
export function agree(title, words, yes = "Do it") {
  return ask(title, [h("p", {}, words)], yes).then((answer) => answer !== null);
}

/** A line of text, or null. */
export function line(title, label, yes = "Do it") {
  const input = h("input", { type: "text", name: "line", autocomplete: "off" });
  return ask(title, [h("label", {}, label, input)], yes).then((answer) => (answer === null ? null : input.value));
}

function ask(title, content, yes) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-label": title });
    const form = h("form", { method: "dialog" }, h("h2", {}, title), content,
      h("div", { class: "dialog-end" },
        h("button", { type: "button", class: "quiet", onclick: () => dialog.close("") }, "Leave it"),
        h("button", { type: "submit", value: "yes", class: "danger" }, yes)));
    put(dialog, form);
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? true : null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

let clear = 0;

/** A line at the bottom of the page, for a while. */
export function say(words, isBad = false) {
  const place = document.getElementById("says");
  place.textContent = words;
  place.className = isBad ? "says bad shown" : "says shown";
  clearTimeout(clear);
  clear = setTimeout(() => place.classList.remove("shown"), isBad ? 8000 : 3000);
}

/** Does something, and says how it went. Gives back whether it went well. */
export async function attempt(doing, done) {
  try {
    const result = await doing();
    if (done) say(typeof done === "function" ? done(result) : done);
    return true;
  } catch (error) {
    say(error.hint ? `${error.message} (${error.hint})` : error.message, true);
    return false;
  }
}
