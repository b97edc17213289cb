"""The page of a local server in headless Chromium."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from report_pages import WINDOW, Page

from collector.web.page_server import Served, page_server
from collector.web.perfetto_files import perfetto_files
from collector.web.run_folder import RunFolder

TOKEN = "a-token-of-the-test"


@contextmanager
def _server(*given: Path, perfetto: bool = False, profiles: tuple[Path, ...] = ()) -> Iterator[str]:
    """The address of a server of files and folders."""
    from collector.web.listening import listening_sockets

    uvicorn = pytest.importorskip("uvicorn")
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
def serving() -> Iterator[Callable[..., str]]:
    """Starts a server of files and folders and gives its address; servers end after the pages that they serve."""
    with ExitStack() as servers:
        yield lambda *given, **options: servers.enter_context(_server(*given, **options))


class HeldRequests:
    """The requests of a page that match a pattern, which reach the server once a test continues them."""

    def __init__(self, page: Any, pattern: str) -> None:
        self._page = page
        self._routes: list[Any] = []
        page.route(pattern, lambda route: self._routes.append(route))

    def next(self) -> Any:
        """The next of them, awaited: the page may show that it waits before the browser hands its request over."""
        while not self._routes:
            self._page.wait_for_timeout(5)
        return self._routes.pop(0)


class ServedPage(Page):
    """The page of a server."""

    origin = ""

    def __init__(self, page: Any) -> None:
        super().__init__(page)
        self.allowed: list[str] = []
        """What Perfetto's page writes to the console."""
        page.on("console", self._console)
        page.on("requestfinished", self._reached)

    def _console(self, message: Any) -> None:
        if "/perfetto/" in message.location["url"]:
            self.allowed.append(f"{message.type}: {message.text}")

    def _is_own(self, request: Any) -> bool:
        return request.url.startswith((self.origin or "http://127.0.0.1", "blob:", "about:", "data:"))

    def _request(self, request: Any) -> None:
        if not self._is_own(request):
            self.complaints.append(f"request: {request.url}")
            if "/perfetto/" in request.frame.url:  # whose policy ends it before it leaves
                self.allowed.append(f"request: {request.url}")

    def _reached(self, request: Any) -> None:
        if not self._is_own(request):
            self.complaints.append(f"reached: {request.url}")

    def open(self, address: str, chosen: str = "") -> ServedPage:
        """Show a server's page with what is chosen behind the ``#`` of its address."""
        self.origin = address
        self.page.goto("about:blank")
        self.page.goto(f"{address}#token={TOKEN}{'&' if chosen else ''}{chosen}")
        self.page.wait_for_selector("article")
        return self

    def hold(self, pattern: str) -> HeldRequests:
        """Hold the requests whose addresses match a pattern, from now on."""
        return HeldRequests(self.page, pattern)

    def unanswered(self) -> None:
        """Allow what the browser writes to the console about requests that a test ended."""
        self.allowed += [each for each in self.complaints if "net::ERR_FAILED" in each]


@pytest.fixture
def ui(browser: Any, serving: Callable[..., str]) -> Iterator[ServedPage]:
    """Opens addresses of a server in a page that must have nothing to complain of at the end."""
    context = browser.new_context(viewport=WINDOW, color_scheme="light", reduced_motion="reduce")
    context.set_default_timeout(120_000)
    page = ServedPage(context.new_page())
    yield page
    context.close()
    assert [each for each in page.complaints if each not in page.allowed] == []
