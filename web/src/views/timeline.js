// Everything that ran, lane by lane.
import { html } from "htm/preact";
import { Lanes } from "../lanes.js";
import { grouped } from "../numbers.js";
import { Perfetto } from "../perfetto.js";
import { address } from "../state.js";

/** @param {import("../views.js").Shown} props */
export function Timeline({ step, place }) {
  const note = held(step);
  return html`
    <h2>Timeline</h2>
    ${note && html`<p class="note">${note}</p>`}
    ${step.lanes_left_out > 0 && html`<p class="note">${grouped(step.lanes_left_out)} of ${grouped(step.lanes.length + step.lanes_left_out)} lanes are left out, those with the fewest slices: <a href=${address("streams")}>Streams</a> has a row for each stream, and ${step.id ? "Perfetto, below, shows" : "a trace that collector timeline writes has"} all lanes.</p>`}
    <${Lanes} step=${step} place=${place} />
    <${Perfetto} step=${step} />`;
}

/** Words on what the file holds of the slices. @param {import("../provider.js").Step} step */
function held(step) {
  const all = step.lanes.reduce((sum, lane) => sum + lane.slices, 0);
  if (step.slices >= all) return "";
  return `This file holds the longest ${grouped(step.slices)} of ${grouped(all)} slices, and of all others how dense they were: --max-size gives room for more.`;
}
