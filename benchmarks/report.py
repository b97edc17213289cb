"""What a page about a step costs: to write it, to mail it, to open it.

Claims, on a step of a million kernels with their launch calls:

* `collector report` takes at most 4 CPU seconds and 600 MiB with Python's own start, and at most 3 times the
  processor time in which `collector timeline` writes the same step as a Perfetto trace.
* The file has at most 2 MB, and with ``--max-size 8MB`` at most 8 MB.
* Eight ranks of as many kernels each take at most 3 GB.
* Script and style of the page have at most 0.4 MB, and the page of the demo at most 0.6 MB.
* In Chromium, where playwright and it are installed, the page shows its first content within a second, and sorts and
  filters its gaps within 100 ms.

Each figure is that of a process of its own. Files are in a temporary folder, and are read once before.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from analysis import recording

from collector.web.report_file import asset

RANKS = 8
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


def opened(path: Path) -> dict[str, float]:
    """Milliseconds until the page shows its first content, and to sort and filter its gaps; empty without a browser."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None or importlib.util.find_spec("playwright") is None:
        return {}
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=CHROMIUM_ARGS)
        page: Any = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto(path.as_uri())
        page.wait_for_selector("nav[aria-label=views]")
        first = page.evaluate(
            "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()"
        )
        page.goto(f"{path.as_uri()}#view=idle")
        page.wait_for_selector("section[aria-label=Gaps] th button")

        def took(action: str) -> float:
            timed = f"const began = performance.now(); {action}; return await ({AFTER_DRAWING})() - began;"
            return float(page.evaluate(f"async () => {{ {timed} }}"))

        gaps = "document.querySelector('section[aria-label=Gaps]')"
        found = {
            "first content": float(first),
            "sort": took(f"{gaps}.querySelectorAll('th button')[1].click()"),
            "filter": took(
                f"const field = {gaps}.querySelector('input.search'); field.value = '0'; "
                "field.dispatchEvent(new Event('input', { bubbles: true }))"
            ),
        }
        browser.close()
        return found


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
        drawn = cost_of("timeline", step, "-o", folder / "step.pftrace")
        written = cost_of("report", step, "-o", page)
        line("write the page, CPU", 4, written.cpu_s, " s")
        line("write the page, by collector timeline", 3, written.cpu_s / drawn.cpu_s, "")
        line("write the page, memory", 600, written.peak_mib, " MiB")
        line("the page", 2, page.stat().st_size / 1e6, " MB")
        cost_of("report", step, "-o", large, "--max-size", "8MB")
        line("the page with --max-size 8MB", 8, large.stat().st_size / 1e6, " MB")
        together = cost_of("report", *[step] * ranks, "-o", folder / "ranks.html")
        line(f"{ranks} ranks, memory", 3000, together.peak_mib * 1.048576, " MB")
        line("script and style", 0.4, sum(len(asset(each).encode()) for each in ("app.js", "app.css")) / 1e6, " MB")
        cost_of("demo", "--simulate", "-o", folder / "demo.pb")
        cost_of("report", folder / "demo.pb", "-o", folder / "demo.html")
        line("the page of the demo", 0.6, (folder / "demo.html").stat().st_size / 1e6, " MB")
        times = opened(page)
        for action, most in (("first content", 1000), ("sort", 100), ("filter", 100)):
            if action in times:
                line(action, most, times[action], " ms")
    if not times:
        print("\nThe page was not opened: that needs playwright and Chromium.")


if __name__ == "__main__":
    main()
