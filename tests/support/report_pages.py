"""Reports as their readers see them: the data in a file, and its page in headless Chromium."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import CHROMIUM_ARGS

_ISLAND = re.compile(r'<script type="application/octet-stream" id="([a-z0-9-]+)">([A-Za-z0-9+/=]*)</script>')
RECORDED = [
    "hta/a100_alexnet.json.gz",
    "nsys_ai/mfu_2gpu_before.sqlite.gz",
    "hta/v100_rank1of2_diff_test_graphs.json.gz",
    "xprof/gpu_multi_worker.xplane.pb.gz",
    "torch_tutorial/h100_transformer_before.json.gz",
]
"""Traces of different tools, among the recorded ones, by which pages are compared with answers."""
RECORDED_AND_LARGE = [
    pytest.param(name, marks=[] if name.startswith(("hta/a100", "torch")) else pytest.mark.slow) for name in RECORDED
]
"""The same, where the large ones take seconds."""
WINDOW: Any = {"width": 1500, "height": 950}


def islands(path: Path) -> dict[str, bytes]:
    """The parts of a report by their names, unpacked."""
    return {name: gzip.decompress(base64.b64decode(text)) for name, text in _ISLAND.findall(path.read_text("utf-8"))}


def page_of(path: Path) -> dict[str, Any]:
    """The data of a report."""
    return json.loads(islands(path)["data"])


def slices(path: Path, step: int = 0) -> list[tuple[int, int, int, int]]:
    """The slices of a step of a report: lane, start in ns since the step began, length, name."""
    planes = np.frombuffer(islands(path)[f"slices-{step}"], np.uint8)
    described = page_of(path)["steps"][step]
    widths = (2, described["time_bytes"], described["time_bytes"], 3)
    count = len(planes) // sum(widths)
    columns, at = [], 0
    for width in widths:
        rows = planes[at : at + width * count].reshape(width, count).astype(np.int64)
        columns.append((rows << (8 * np.arange(width))[:, None]).sum(axis=0))
        at += width * count
    lane, since, length, name = columns
    found, start = [], 0
    for row in range(count):
        start = int(since[row]) + (start if row and lane[row] == lane[row - 1] else described["first_ns"])
        found.append((int(lane[row]), start, int(length[row]), int(name[row])))
    return found


class Page:
    """A report in the browser; what it does that it must not do is kept."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.on("request", self._request)

    def _request(self, request: Any) -> None:
        if not request.url.startswith(("file:", "blob:", "about:")):
            self.complaints.append(f"request: {request.url}")

    def open(self, path: Path, chosen: str = "") -> Page:
        """Show a report with what is chosen behind the ``#`` of its address."""
        self.page.goto("about:blank")
        self.page.goto(f"{path.as_uri()}#{chosen}")
        self.page.wait_for_selector("nav[aria-label=views]")
        return self

    def turn(self, view: str, chosen: str = "") -> Page:
        """Show another view of the report that is open, with what is chosen besides, as its links do."""
        changed = """hash => new Promise(done => {
          if (location.hash === `#${hash}`) done();
          window.addEventListener("hashchange", () => done(), { once: true });
          location.hash = hash;
        })"""
        self.page.evaluate(changed, f"view={view}{chosen and f'&{chosen}'}")
        self.page.wait_for_selector(f"nav a[aria-current=page][href^='#view={view}']")
        return self

    def drawn(self) -> Page:
        """Wait until the lanes are drawn and the answers are there."""
        self.page.wait_for_function("""() => !document.body.innerText.includes('Loading the lanes') &&
          ![...document.querySelectorAll('[role=status]')].some(each => each.innerText.includes('Loading'))""")
        return self

    def press_at_once(self, *keys: str) -> None:
        """Press keys on what has the focus, all of them before the page is drawn again."""
        script = """keys => { for (const key of keys) {
          document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
        } }"""
        self.page.evaluate(script, list(keys))

    def views(self) -> list[str]:
        """The names of the views that have something to show, in their order."""
        links = self.page.eval_on_selector_all("nav[aria-label=views] a", "all => all.map(each => each.hash)")
        return [each.removeprefix("#view=").partition("&")[0] for each in links]

    def unlawful(self, *rules: str) -> list[tuple[str, str]]:
        """What axe finds wrong for people who cannot see, or see colours, or use a mouse: rule and place of each.

        Of a table it takes the first rows, which look as the others do; and of its rules those that are named, or all.
        """
        if self.page.evaluate("() => typeof axe === 'undefined'"):
            package = pytest.importorskip("axe_playwright_python")
            self.page.evaluate(next(Path(package.__file__).parent.glob("axe.min.js")).read_text("utf-8"))
        found: list[tuple[str, str]] = self.page.evaluate(
            "rules => axe.run({ exclude: [['tbody tr:nth-child(n + 9)']] },"
            " { resultTypes: ['violations'], ...(rules.length ? { runOnly: rules } : {}) }).then(({ violations }) =>"
            " violations.map(each => [each.id, each.nodes[0].html.slice(0, 200)]))",
            list(rules),
        )
        return [(rule, place) for rule, place in found]

    def unlawful_in_both_themes(self) -> list[tuple[str, str, str]]:
        """What axe finds wrong in the light theme, and of colours in the dark one: theme, rule and place of each."""
        found = []
        for theme, rules in (("light", ()), ("dark", ("color-contrast",))):
            self.page.emulate_media(color_scheme=theme)
            found += [(theme, *each) for each in self.unlawful(*rules)]
        return found

    def unlawful_views(self, views: Iterable[str], chosen: str = "") -> list[tuple[str, str, str, str]]:
        """What axe finds wrong in views, which are shown in turn: view, theme, rule and place of each."""
        return [(view, *each) for view in views for each in self.turn(view, chosen).drawn().unlawful_in_both_themes()]

    def table(self, label: str) -> list[list[str]]:
        """The rows of a table's body as texts."""
        return self.page.eval_on_selector_all(
            f"section[aria-label={json.dumps(label)}] tbody tr",
            "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))",
        )

    def chosen(self) -> dict[str, str]:
        """What the address says."""
        return self.page.evaluate("() => Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None:
        pytest.skip("REPORTS NOT TESTED IN A BROWSER: they need chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=program, args=CHROMIUM_ARGS)


@pytest.fixture
def report_page(browser: Any) -> Iterator[Page]:
    """A page of the browser, which must have nothing to complain of at the end."""
    context = browser.new_context(viewport=WINDOW, color_scheme="light", reduced_motion="reduce")
    context.set_default_timeout(120_000)
    page = Page(context.new_page())
    yield page
    context.close()
    assert page.complaints == []
