"""The served page in headless Chromium: the list, a run, windows that Python answers, and nothing asked of others."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest
from report_pages import Page

import collector
from collector import analysis
from collector.text.terminal import printable
from collector.web.page_server import Served, page_server
from collector.web.perfetto_files import perfetto_files
from collector.web.run_folder import RunFolder

uvicorn = pytest.importorskip("uvicorn")

pytestmark = [pytest.mark.viewer, pytest.mark.slow]

TOKEN = "a-token-of-the-test"
TORCH = "torch_tutorial/h100_transformer_before.json.gz"
TORCH_AFTER = "torch_tutorial/h100_transformer_after.json.gz"


@contextmanager
def serving(*given, perfetto=False, profiles=()):
    """The address of a server of files and folders."""
    from collector.web.listening import listening_sockets

    folder = RunFolder(given, profiles)
    listed = folder.runs().by_id
    first = next(iter(listed)) if len(listed) == 1 else ""
    sockets, port = listening_sockets(0)
    app = page_server(Served(folder, "the runs", perfetto_files() if perfetto else None, first), port=port, token=TOKEN)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": sockets}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def ui(browser):
    """Opens addresses of a server in a page that must have nothing to complain of at the end."""
    context = browser.new_context(viewport={"width": 1500, "height": 950}, color_scheme="light")
    context.set_default_timeout(120_000)
    page = ServedPage(context.new_page())
    yield page
    context.close()
    assert page.complaints == []


class ServedPage(Page):
    """The page of a server."""

    origin = ""

    def _request(self, request):
        if not request.url.startswith((self.origin or "http://127.0.0.1", "blob:", "about:", "data:")):
            self.complaints.append(f"request: {request.url}")

    def open(self, address, chosen=""):
        self.origin = address
        self.page.goto("about:blank")
        self.page.goto(f"{address}#token={TOKEN}{'&' if chosen else ''}{chosen}")
        self.page.wait_for_selector("article")
        return self


@pytest.fixture
def folder(shared, tmp_path):
    """A folder with two recorded traces and what is none."""
    for name, target in ((TORCH, "before.json.gz"), (TORCH_AFTER, "after.json.gz")):
        (tmp_path / target).write_bytes((shared / "data" / "gpu_traces" / name).read_bytes())
    (tmp_path / "empty.pb").write_bytes(b"")
    (tmp_path / "<img src=x onerror=alert(1)>.txt").write_text("hello")
    return tmp_path


def test_the_list_has_every_file_with_its_figures_or_its_reason(ui, folder):
    with serving(folder) as address:
        ui.open(address)
        ui.page.wait_for_function(
            "() => [...document.querySelectorAll('section[aria-label=Runs] tbody tr')]"
            ".filter(row => row.innerText.includes('%')).length === 2"
        )
        rows = {row[0]: row for row in ui.table("Runs")}
        assert set(rows) == {"before.json.gz", "after.json.gz", "empty.pb", "<img src=x onerror=alert(1)>.txt"}
        assert rows["empty.pb"][2] == "the file is empty"
        step = collector.load(folder / "before.json.gz")
        assert (
            f"{analysis.devices(step).totals['busy_ns'] / analysis.devices(step).totals['window_ns']:.1%}"
            in rows["before.json.gz"]
        )
        assert "token" not in ui.page.url
        (folder / "new.json.gz").write_bytes((folder / "before.json.gz").read_bytes())
        ui.page.wait_for_function(
            "() => document.querySelector('section[aria-label=Runs]').innerText.includes('new.json.gz')"
        )


def test_a_run_has_the_views_of_its_report_and_its_tables_follow_the_window(ui, folder):
    step = collector.load(folder / "before.json.gz")
    with serving(folder / "before.json.gz") as address:
        ui.open(address)
        ui.page.wait_for_selector("nav[aria-label=views]")
        views = [each.partition("&")[0] for each in ui.views()]
        assert {"overview", "timeline", "idle", "kernels", "ops", "runs"} <= set(views)
        for view in views:
            ui.page.locator(f"nav a[href^='#view={view}&']").click()
            ui.page.wait_for_timeout(300)
            assert not ui.page.locator("article [role=alert]").count(), view
            if view == "runs":
                ui.page.go_back()
        length = step.recording.clock.window_ns
        start, end = length // 4, length // 2
        run = ui.chosen()["runs"]
        ui.open(address, f"view=kernels&runs={run}&from={start}&to={end}&cols=-")
        answer = analysis.kernels(analysis.between(step, start, end))
        counts = [f"{count:,}" for count in answer["count"].tolist()]
        ui.page.wait_for_selector("section[aria-label=Kernels] tbody tr")
        found = ui.table("Kernels")
        assert [row[0] for row in found] == [printable(name) for name in answer["name"].tolist()][:200]
        column = [each.name for each in answer.columns].index("count")
        assert [row[column] for row in found] == counts[:200]


def test_without_its_token_the_page_says_what_to_do(browser, folder):
    context = browser.new_context()
    page = context.new_page()
    with serving(folder) as address:
        page.goto(address)
        page.wait_for_selector("[role=alert]")
        assert "open the address that the command printed" in page.inner_text("main")
        page.goto(f"{address}#token={TOKEN}")
        page.reload()
        page.wait_for_selector("section[aria-label=Runs]")
        page.goto(address)  # the cookie is enough
        page.wait_for_selector("section[aria-label=Runs]")
    context.close()


def test_a_growing_file_is_read_again(ui, build, tmp_path):
    build.kernel("first", 10, 20)
    build.recording().save(tmp_path / "step.gpurec")
    with serving(tmp_path) as address:
        ui.open(address, "view=kernels")
        ui.page.wait_for_selector("section[aria-label=Kernels] tbody tr")
        build.kernel("second", 40, 20)
        build.recording().save(tmp_path / "step.gpurec")
        ui.page.wait_for_function(
            "() => document.querySelectorAll('section[aria-label=Kernels] tbody tr').length === 2"
        )
