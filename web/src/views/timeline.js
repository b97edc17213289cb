// Everything that ran, lane by lane.
import { html } from "htm/preact";
import { Perfetto } from "../perfetto.js";
import { Lanes, held } from "../lanes.js";

/** @param {import("../views.js").Shown} props */
export function Timeline({ step, place }) {
  const note = held(step);
  return html`
    <h2>Timeline</h2>
    ${note && html`<p class="note">${note}</p>`}
    <${Lanes} step=${step} place=${place} />
    <${Perfetto} step=${step} />`;
}
