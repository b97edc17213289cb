"""Draw a view of a report as a browser shows it, as PNG.

CHROMIUM=/usr/bin/chromium python scripts/report_picture.py REPORT.html VIEW OUT.png
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1280, 800
DRAWN_MS = 1_000
"""The time that lanes and charts take to be drawn, with room to spare."""


def main(report: str, view: str, out: str) -> None:
    """Open the report and write what its window shows."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(f"{Path(report).resolve().as_uri()}#view={view}")
        page.wait_for_selector(f"nav a[aria-current=page][href='#view={view}']")
        page.wait_for_timeout(DRAWN_MS)
        page.screenshot(path=out)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
