// Everything that ran, lane by lane.
import { html } from "htm/preact";
import { Lanes } from "../lanes.js";
import { grouped } from "../numbers.js";
import { Perfetto } from "../perfetto.js";

/** @param {import("../views.js").Shown} props */
export function Timeline({ step, place }) {
  const note = held(step);
  return html`
    <h2>Timeline</h2>
    ${note && html`<p class="note">${note}</p>`}
    <${Lanes} step=${step} place=${place} />
    <${Perfetto} step=${step} />`;
}

/** Words on what the file holds of the slices. @param {import("../provider.js").Step} step */
function held(step) {
  const all = step.lanes.reduce((sum, lane) => sum + lane.slices, 0);
  const parts = [];
  if (step.slices < all) {
    parts.push(`This file holds the longest ${grouped(step.slices)} of ${grouped(all)} slices, and of all others how dense they were: --max-size gives room for more.`);
  }
  if (step.lanes_left_out) parts.push(`${grouped(step.lanes_left_out)} lanes with the least in them are left out.`);
  return parts.join(" ");
}
