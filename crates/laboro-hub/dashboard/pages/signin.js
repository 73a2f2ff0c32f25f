// Asks for a token. What is typed goes to the hub and into this tab's memory, nowhere else.

import { h } from "../dom.js";

/** Why a token that was good before, or came with a link, is refused. */
export function why(error) {
  if (error.status === 401) {
    return "The hub does not accept this token: it was revoked, has expired, or belongs to another hub. " +
      "For a new link run `laboro dashboard` where the hub's access file is.";
  }
  return error instanceof TypeError ? "The hub does not answer. Is it running, and is its certificate trusted here?"
    : error.message;
}

/** `refusal`: why one that the browser had was not taken, if there was one. */
export function form(refusal, enter) {
  const input = h("input", { type: "password", name: "token", required: true, autocomplete: "current-password",
    spellcheck: "false", placeholder: "token" });
  const wrong = h("p", { class: "trouble", role: "alert", hidden: !refusal }, refusal);
  const button = h("button", { type: "submit" }, "Sign in");
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    wrong.hidden = true;
    try {
      await enter(input.value.trim());
    } catch (error) {
      wrong.textContent = error.status === 401 ? "The hub does not know this token." : why(error);
      wrong.hidden = false;
      input.select();
    } finally {
      button.disabled = false;
    }
  };
  return h("form", { class: "signin panel", onsubmit: submit },
    h("h1", {}, "Sign in"),
    h("p", {}, "Enter a token. ", h("code", {}, "laboro access --role watch"), " makes one that may only look; ",
      h("code", {}, "laboro dashboard"), " prints a link that signs you in."),
    h("input", { type: "text", name: "username", value: "token", autocomplete: "username", hidden: true }),
    h("label", {}, "Token", input), wrong, button);
}
