// Asks for a token. What is typed goes to the hub and into this tab's memory, nowhere else.

import { h } from "../dom.js";

export function form(enter) {
  const input = h("input", { type: "password", name: "token", required: true, autocomplete: "current-password",
    spellcheck: "false", placeholder: "token" });
  const wrong = h("p", { class: "trouble", role: "alert", hidden: true });
  const button = h("button", { type: "submit" }, "Sign in");
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    wrong.hidden = true;
    try {
      await enter(input.value.trim());
    } catch (error) {
      wrong.textContent = error.status === 401 ? "The hub does not know this token." : error.message;
      wrong.hidden = false;
      input.select();
    } finally {
      button.disabled = false;
    }
  };
  return h("form", { class: "signin panel", onsubmit: submit },
    h("h1", {}, "Sign in"),
    h("p", {}, "Show the hub a token. ", h("code", {}, "laboro access --role watch"), " makes one that only looks; ",
      h("code", {}, "laboro dashboard"), " prints a link that signs you in."),
    h("input", { type: "text", name: "username", value: "token", autocomplete: "username", hidden: true }),
    h("label", {}, "Token", input), wrong, button);
}
