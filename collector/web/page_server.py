"""The local server of the page: its answers. `collector.web.request_guard` decides which requests are answered."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING, Any

from collector.analysis.shared_values import shared_values
from collector.analysis.steps import steps
from collector.runtime.optional_packages import optional_package
from collector.version import version
from collector.web.browser_start import opened_in_browser
from collector.web.opened_runs import OpenedRun, OpenedRuns, RefusedError
from collector.web.perfetto_files import PerfettoFiles, content_type
from collector.web.perfetto_traces import perfetto_trace, trace_shift
from collector.web.profile_answers import profile_answer, profile_choices
from collector.web.report_data import FORMAT, described_step, findings_of, together_data
from collector.web.report_file import asset
from collector.web.request_guard import RequestGuard
from collector.web.run_folder import ID, RunFolder
from collector.web.single_answers import AskedAnswer, keys, single_answer

if TYPE_CHECKING:
    from socket import socket
    from types import FrameType

    from starlette.requests import Request
    from starlette.responses import Response

MOST_SLICES = 2_000_000
"""The maximum number of slices of the timeline in the page; the longest ones are sent."""
_PAGE = """<!doctype html>
<html lang=en>
<head>
<meta charset=utf-8>
<meta name=viewport content="width=device-width,initial-scale=1">
<meta name=referrer content=no-referrer>
<title>collector</title>
<link rel=icon href="data:,">
<link rel=stylesheet href=/app.css>
</head>
<body>
<noscript>This page is drawn by a script, and scripts are disabled.</noscript>
<main id=app></main>
<script src=/app.js></script>
</body>
</html>
"""
_STATIC: dict[str, tuple[str, Callable[[], str]]] = {
    "/": ("text/html; charset=utf-8", lambda: _PAGE),
    "/app.js": ("text/javascript; charset=utf-8", lambda: asset("app.js")),
    "/app.css": ("text/css; charset=utf-8", lambda: asset("app.css")),
    "/licences": ("text/plain; charset=utf-8", lambda: asset("LICENSES.txt")),
}
"""Path -> type and content of files without data about any run."""
_BYTES = "application/octet-stream"
"""Content type of answers that are not JSON."""
MOST_TOGETHER = 64
"""The maximum number of runs on one page."""
_NUMBER = re.compile("[0-9]{1,18}")


@dataclass(frozen=True)
class Served:
    """The folder that a server shows, and its settings."""

    folder: RunFolder
    title: str
    perfetto: PerfettoFiles | None = None
    first: str = ""
    """The id of the run that the page opens at once; ``""``: it shows the list."""


def page_server(served: Served, *, port: int, token: str) -> RequestGuard:
    """The application of a server.

    Args:
        served: the folder to show, and settings.
        port: the port of the server.
        token: the token that every request for data must have.

    Raises:
        collector.MissingDependencyError: the packages of the extra ``ui`` are not installed.
    """
    optional_package("starlette")
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    answers = _Answers(served, port, token)

    def route(path: str, answer: Callable[[Request], Response]) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                return await run_in_threadpool(answer, request)
            except RefusedError as error:  # no status of an error, which browsers would report on their consoles
                return JSONResponse({"error": str(error)})

        return Route(path, endpoint, methods=["GET"])

    async def unknown(request: Request, _: Exception) -> Response:
        return JSONResponse({"error": "there is no such address"}, status_code=404)

    application = Starlette(
        routes=[
            *(route(path, answers.static) for path in _STATIC),
            route("/api/session", answers.session),
            route("/api/runs", answers.runs),
            route("/api/runs/{id}", answers.step),
            route("/api/runs/{id}/bins", answers.bins),
            route("/api/runs/{id}/slices", answers.slices),
            route("/api/runs/{id}/figures", answers.figures),
            route("/api/runs/{id}/answers", answers.answer),
            route("/api/runs/{id}/trace", answers.trace),
            route("/api/runs/{id}/trace_shift", answers.trace_shift),
            route("/api/runs/{id}/profile", answers.profile),
            route("/api/profile_choices", answers.profile_choices),
            route("/api/together", answers.together),
            route("/perfetto/{name:path}", answers.perfetto),
        ],
        exception_handlers={404: unknown},
    )
    guard = RequestGuard(application, port=port, token=token, open_paths=_STATIC)
    answers.cookie = guard.cookie
    return guard


class _Answers:
    """The answers to requests that the guard has let through."""

    def __init__(self, served: Served, port: int, token: str) -> None:
        self._served = served
        self._opened = OpenedRuns(served.folder)
        self._token = token
        self.cookie = ""

    def static(self, request: Request) -> Response:
        """A file of the page."""
        kind, content = _STATIC[request.url.path]
        return _response(content().encode(), kind)

    def session(self, request: Request) -> Response:
        """Describe the server, and give a client with the token in a header a cookie that scripts cannot read."""
        about = {
            "format": FORMAT,
            "version": version(),
            "title": self._served.title,
            "perfetto": self._served.perfetto is not None,
            "first": self._served.first,
        }
        response = _response(json.dumps(about).encode(), "application/json")
        cookie: SimpleCookie = SimpleCookie({self.cookie: self._token})
        cookie[self.cookie].update({"path": "/", "httponly": "1", "samesite": "Strict"})
        response.headers["set-cookie"] = cookie[self.cookie].OutputString()
        return response

    def runs(self, request: Request) -> Response:
        """The list of runs; empty if the page already has it."""
        runs = self._served.folder.runs()
        rows = [
            {
                "id": run.id,
                "name": run.name,
                "kind": run.kind,
                "bytes": run.num_bytes,
                "modified_ms": run.modified_ns // 1_000_000,
                "version": run.version,
                "refused": self._opened.refusal(run),
            }
            for run in runs.by_id.values()
        ]
        body = json.dumps({"runs": rows, "left_out": runs.left_out}).encode()
        tag = f'"{hash(body) & (1 << 64) - 1:x}"'
        if request.headers.get("if-none-match") == tag:
            return _response(b"", "application/json", status=304)
        response = _response(body, "application/json")
        response.headers["etag"] = tag
        return response

    def step(self, request: Request) -> Response:
        """A step without its answers, and the keys of those that can be asked for."""

        def compute(run: OpenedRun) -> dict[str, Any]:
            with shared_values():
                described = described_step(
                    run.step, run.run.name, run.lanes, steps(run.step).windows, findings_of(run.step)
                )
            return {**described, "slices": min(run.lanes.num_slices, MOST_SLICES), "keys": keys()}

        return self._of_run(request, "step", compute)

    def bins(self, request: Request) -> Response:
        """See `collector.web.report_lanes.Lanes.bins`."""
        return self._of_run(request, "bins", lambda run: run.lanes.bins(), _BYTES)

    def slices(self, request: Request) -> Response:
        """See `collector.web.report_lanes.Lanes.slices`."""
        return self._of_run(request, "slices", lambda run: run.lanes.slices(MOST_SLICES), _BYTES)

    def figures(self, request: Request) -> Response:
        """A few figures of a run, for the list."""
        from collector.web.run_figures import run_figures

        return self._of_run(request, "figures", lambda run: run_figures(run.step))

    def answer(self, request: Request) -> Response:
        """One answer; see `collector.web.single_answers`."""
        given = request.query_params
        asked = AskedAnswer(given.get("key", ""), _part(given), given.get("q", ""), given.get("sort", ""))
        return self._of_run(request, repr(asked), lambda run: single_answer(run.step, run.run.name, asked, run.latest))

    def together(self, request: Request) -> Response:
        """The answers of several runs together, and the changes from the first of them to the others."""
        given = request.query_params
        ids, before = given.get("runs", "").split(","), given.get("before", "") or "0"
        if len(ids) > MOST_TOGETHER:
            raise RefusedError(f"{len(ids)} runs are too many for one page: it takes {MOST_TOGETHER}")
        if not (_NUMBER.fullmatch(before) and int(before) < len(ids)):
            raise RefusedError("runs are compared with some of them, the first ones, and not with all")

        def compute(runs: list[OpenedRun]) -> dict[str, Any]:
            return together_data([run.step for run in runs], [run.run.name for run in runs], int(before))

        return _response(self._opened.answer(ids, f"together {before}", compute), "application/json")

    def profile(self, request: Request) -> Response:
        """An answer of tfprof's views; see `collector.web.profile_answers`."""
        words = dict(request.query_params)
        view = words.pop("view", "")

        def compute(run: OpenedRun) -> dict[str, Any]:
            return profile_answer(run.profiler, run.run.name, view, words)

        return self._of_run(request, f"profile {view} {sorted(words.items())}", compute)

    def profile_choices(self, request: Request) -> Response:
        """The choices of tfprof's views."""
        return _response(json.dumps(profile_choices()).encode(), "application/json")

    def trace(self, request: Request) -> Response:
        """The timeline as a Perfetto trace, all of it or a part."""
        given = request.query_params
        part, most = _part(given), given.get("most", "")
        if most and not _NUMBER.fullmatch(most):
            raise RefusedError("most is a number of slices")
        max_events = int(most) if most else None
        asked = f"trace {part} {max_events}"
        return self._of_run(request, asked, lambda run: perfetto_trace(run.step, part, max_events), _BYTES)

    def trace_shift(self, request: Request) -> Response:
        """The difference between a time of the Perfetto trace and the time since the step began."""
        return self._of_run(request, "trace_shift", lambda run: {"shift_ns": trace_shift(run.step)})

    def perfetto(self, request: Request) -> Response:
        """A file of Perfetto's page."""
        files = self._served.perfetto
        name = request.path_params["name"] or "index.html"
        read = files.read.get(name) if files is not None else None
        if files is None or read is None:
            return _response(
                b'{"error": "the copy of Perfetto\'s page has no such file"}', "application/json", status=404
            )
        response = _response(read(), content_type(name))
        response.headers["content-security-policy"] = files.policy
        return response

    def _of_run(
        self, request: Request, asked: str, compute: Callable[[OpenedRun], Any], kind: str = "application/json"
    ) -> Response:
        id_ = request.path_params["id"]
        if not ID.fullmatch(id_):
            raise RefusedError("there is no such run")
        found = self._opened.answer([id_], asked, lambda runs: compute(runs[0]))
        return _response(found, kind)


def _response(body: bytes, kind: str, status: int = 200) -> Response:
    from starlette.responses import Response

    return Response(body, status_code=status, media_type=None, headers={"content-type": kind})


def _part(given: Mapping[str, str]) -> tuple[int, int] | None:
    """The part of a step that a request asks about, ns since it began.

    Raises:
        RefusedError: the request does not state a valid part.
    """
    first, last = given.get("from", ""), given.get("to", "")
    if not first and not last:
        return None
    if not (_NUMBER.fullmatch(first) and _NUMBER.fullmatch(last) and int(first) < int(last)):
        raise RefusedError("a part of a step is given by from and to, in ns, the smaller one first")
    return int(first), int(last)


def serve(application: RequestGuard, sockets: Sequence[socket], *, address: str = "") -> None:
    """Answer requests until the program is asked to end.

    Args:
        application: the result of `page_server`.
        sockets: the sockets on which the server listens.
        address: the address to open in a browser; ``""``: none.
    """
    uvicorn = optional_package("uvicorn")
    config = uvicorn.Config(
        application,
        access_log=False,
        log_level="critical",
        lifespan="off",
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    with opened_in_browser(address), _ended_by_hangup(server):
        server.run(sockets=list(sockets))


@contextmanager
def _ended_by_hangup(server: Any) -> Iterator[None]:
    """End the server at SIGHUP as it ends itself at SIGTERM: the handler of before is called once it has ended.

    That handler raises an exception, which the event loop could lose.
    """
    before = signal.getsignal(signal.SIGHUP) if hasattr(signal, "SIGHUP") else signal.SIG_IGN
    if before is signal.SIG_IGN:
        yield
        return
    caught: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        server.should_exit = True

    signal.signal(signal.SIGHUP, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
    for number in caught:
        signal.raise_signal(number)
