// The page of a server: the list of runs, and the page of those that were chosen. New and growing files are noticed.
import { html } from "htm/preact";
import { useEffect, useState } from "preact/hooks";
import { App } from "./app.js";
import { printable } from "./numbers.js";
import { loadRuns, loadSession, forgetAnswers } from "./server.js";
import { loadPage } from "./provider.js";
import { Ready } from "./ready.js";
import { address, choose, state } from "./state.js";
import { Profile } from "./views/profile.js";
import { Runs } from "./views/runs.js";

/** @typedef {import("./server.js").Run} Run */
/** @typedef {import("./server.js").Session} Session */

/** The kind of a file that holds sums and no timeline. */
const PROFILE = "profile of ProfileContext";
const LOOK_AGAIN_MS = 1000;

export function Served() {
  const [session, setSession] = useState(/** @type {Session | null} */ (null));
  const [listed, setListed] = useState(/** @type {{runs: Run[], left_out: number} | null} */ (null));
  const [why, setWhy] = useState("");
  const [failures, setFailures] = useState(0);
  useEffect(() => {
    let timer = 0;
    let isFailing = false;
    let isKnown = false;
    const look = async () => {
      try {
        if (!isKnown) {
          const found = await loadSession();
          if (found.first && !state.value.runs && state.value.view !== "runs") choose({ runs: found.first });
          setSession(found);
          isKnown = true;
        }
        const found = await loadRuns();
        if (found) setListed(found);
        setWhy("");
        if (isFailing) setFailures((before) => before + 1);
        isFailing = false;
      } catch (error) {
        setWhy(/** @type {Error} */ (error).message);
        isFailing = true;
      }
      timer = setTimeout(look, LOOK_AGAIN_MS);
    };
    look();
    return () => clearTimeout(timer);
  }, []);
  if (!session || !listed) return html`<p class="state" role=${why ? "alert" : "status"}>${why ? printable(why) : "Loading …"}</p>`;
  return html`
    ${why && html`<p class="remark" role="alert">${printable(why)}</p>`}
    <${Chosen} session=${session} listed=${listed} failures=${failures} />`;
}

/** The page of the chosen runs, or the list; `failures`: how often the server did not answer for a while, after which all is
 * asked for again.
 * @param {{session: Session, listed: {runs: Run[], left_out: number}, failures: number}} props */
function Chosen({ session, listed, failures }) {
  const { runs: chosen, before, view } = state.value;
  const ids = chosen ? chosen.split(",") : [];
  const versions = ids.map((id) => `${id} ${listed.runs.find((run) => run.id === id)?.version}`).join(",");
  const wanted = `${chosen} ${before}`;
  const [page, setPage] = useState(/** @type {{of: string, page: import("./provider.js").Page} | null} */ (null));
  const [why, setWhy] = useState("");
  useEffect(() => {
    setWhy("");
    if (!chosen || listed.runs.find((each) => each.id === ids[0])?.kind === PROFILE) return;
    if (ids.some((id) => !listed.runs.some((each) => each.id === id))) { // an address may hold any text, which is not asked for
      setWhy("there is no such run: it was removed, or never existed");
      return;
    }
    let is = true;
    forgetAnswers();
    loadPage({ session, ids, before, earlier: page?.of === wanted ? page.page : undefined }).then(
      (found) => is && setPage({ of: wanted, page: found }),
      (error) => is && setWhy(error.message),
    );
    return () => { is = false; };
  }, [versions, before, failures]);
  const run = listed.runs.find((each) => each.id === ids[0]);
  useEffect(() => { if (!chosen || view === "runs") document.title = printable(session.title); }, [chosen, view]);
  if (run && (view === "prof" || (run.kind === PROFILE && view !== "runs"))) {
    return html`
      <header><h1>${printable(run.name)}</h1></header>
      <nav aria-label="views"><ul>
        <li><a href=${address("runs")}>Runs</a></li>
        ${run.kind !== PROFILE && html`<li><a href=${address("overview")}>Overview</a></li>`}
        <li><a href=${address("prof")} aria-current="page">tfprof</a></li>
      </ul></nav>
      <article><${Profile} key=${run.id} run=${run} failures=${failures} /></article>`;
  }
  if (chosen && view !== "runs" && !why) {
    if (page?.of !== wanted) return html`<p class="state" role="status">Loading …</p>`;
    return html`<${Ready} key=${wanted}><${App} page=${page.page} /></${Ready}>`;
  }
  return html`
    <header><h1>${printable(session.title)}</h1></header>
    ${chosen && why && html`<p class="remark" role="alert">${printable(why)}</p>`}
    <article><${Runs} listed=${listed} failures=${failures} /></article>
    <footer><p>${session.format}, made by cupti-collector ${session.version}. Served by this machine to itself alone.</p></footer>`;
}
