// Where the hub listens, and what happened there. For admins.

import { get } from "../api.js";
import { h, put, swap } from "../dom.js";
import { bytes, count, text } from "../format.js";
import { table } from "../parts.js";

export async function show(place, visit) {
  const list = h("div", {});
  put(place, h("h1", {}, "Doors"), h("section", { class: "panel" }, list));
  const look = async () => {
    if (visit.me.role !== "admin" || visit.me.group) {
      swap(list, h("p", { class: "empty" }, "Only an admin of the whole hub sees its doors."));
      return;
    }
    const { doors } = await get("doors");
    if (visit.isOver) return;
    swap(list, table(["Dialect", "Address", "Group", ["Connected", "number"], ["Ever", "number"], ["Messages in", "number"],
      ["out", "number"], ["Bytes in", "number"], ["out", "number"], ["Refused", "number"], ["Malformed", "number"],
      ["Denied", "number"], ["Silent", "number"], ["Slow", "number"]],
    doors.map((door) => [h("b", {}, door.dialect), h("code", {}, door.address), text(door.group), count(door.connections),
      count(door.connections_total), count(door.messages_in), count(door.messages_out), bytes(door.bytes_in),
      bytes(door.bytes_out), odd(door.refused), odd(door.malformed), odd(door.denied), odd(door.silent), odd(door.slow)]),
    "no door is open"));
  };
  return { title: "Doors", look };
}

function odd(number) {
  return number > 0 ? h("span", { class: "odd" }, count(number)) : "0";
}
