// The hub's last minutes and its last day, kept here and asked for only as far as they are new.

import { get } from "./api.js";

const KEPT = { seconds: 600, minutes: 1440 };

export class Samples {
  seconds = [];
  minutes = [];

  async catchUp() {
    const last = this.seconds.at(-1)?.at_ms ?? 0;
    const fresh = await get(`history?after_ms=${last}`);
    for (const [name, most] of Object.entries(KEPT)) {
      const known = this[name].at(-1)?.at_ms ?? 0;
      this[name] = [...this[name], ...fresh[name].filter((sample) => sample.at_ms > known)].slice(-most);
    }
  }
}
