"""The local server answers its own page alone: hostile requests, hostile files, and what changes while it runs."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hostile_names import EVIL

from collector.dataset.dataset_writer import DatasetWriter
from collector.errors import CollectorError
from collector.files.dataset_files import SCHEMA_FILE
from collector.formats.loading import load
from collector.web import run_folder
from collector.web.page_server import Served, page_server
from collector.web.report_lanes import BINS, FULL
from collector.web.run_folder import RunFolder
from tests.support.file_permissions import permissions_hold
from tests.support.signal_actions import restore_default

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")

PORT, TOKEN = 8123, "t0ken"
SEGMENTS = Path(__file__).resolve().parents[2] / "fuzz" / "segments.journal"
"""A journal of four segments."""
HOST = f"127.0.0.1:{PORT}"
PARTS = ["from=5&to=1", "from=x&to=y", "from=-5&to=5", "from=5", f"from=0&to={10**30}", "from=1&to=٣"]
DATA = ["/api/session", "/api/runs", "/api/runs/0123456789abcdef", "/perfetto/index.html", "/nothing"]


class Client:
    """Asks as a browser does."""

    def __init__(self, *given, **more):
        self.app = page_server(Served(RunFolder(given), "runs", **more), port=PORT, token=TOKEN)

    def ask(self, path, method="GET", **headers):
        named = {"x-collector-token": TOKEN} | {name.replace("_", "-"): value for name, value in headers.items()}

        async def asked():
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
                return await client.request(method, path, headers=named)

        return asyncio.run(asked())

    def raw(self, path):
        """The status of a request for exactly this path."""
        started = []

        async def send(message):
            started.append(message)

        headers = [(b"host", HOST.encode()), (b"x-collector-token", TOKEN.encode())]
        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"",
                 "headers": headers, "scheme": "http", "server": ("127.0.0.1", PORT), "root_path": ""}  # fmt: skip
        asyncio.run(self.app(scope, None, send))
        return started[0]["status"]

    def runs(self):
        return {run["name"]: run for run in self.ask("/api/runs").json()["runs"]}


def is_refusal(answer):
    """Whether an answer is a reason why there is none."""
    return answer.headers["content-type"] == "application/json" and "error" in answer.json()


@pytest.fixture
def step(build):
    """A small step."""
    for number in range(6):
        build.call("cudaLaunchKernel_v7000", 10 + 100 * number, 20, correlation_id=number + 1)
        build.kernel(f"kernel_{number % 2}", 50 + 100 * number, 60, correlation_id=number + 1)
    return build.recording()


@pytest.fixture
def folder(step, tmp_path):
    """A folder with one run."""
    (tmp_path / "runs").mkdir()
    step.save(tmp_path / "runs" / "step.gpurec")
    return tmp_path / "runs"


@pytest.fixture
def client(folder):
    return Client(folder)


@pytest.fixture
def dataset(step, folder):
    """A dataset in the folder: two steps of one rank, which a writer has added at once, and one of another rank."""
    pytest.importorskip("pyarrow")
    for rank, steps in ((0, 2), (1, 1)):
        with DatasetWriter(folder / "set", run="a", rank=rank) as writer:
            for _ in range(steps):
                writer.write(step)
    return folder / "set"


STEPS = ["run=a/rank=0/step_0", "run=a/rank=0/step_1", "run=a/rank=1/step_0"]


class TestDatasets:
    @pytest.mark.medium
    def test_each_step_is_a_run(self, folder, dataset):
        client = Client(folder)
        rows = client.runs()
        assert list(rows) == [*(f"set/{name}" for name in STEPS), "step.gpurec"]
        asked = "answers?key=kernels/name"
        kernels = {name: client.ask(f"/api/runs/{row['id']}/{asked}").json()["values"] for name, row in rows.items()}
        assert "kernel_1" in str(kernels["step.gpurec"])
        assert all(answer == kernels["step.gpurec"] for answer in kernels.values())

    @pytest.mark.parametrize(
        ("given", "names"), [("", STEPS), ("run=a/rank=0", STEPS[:2]), ("run=a/rank=1/step_0", STEPS[2:])]
    )
    def test_a_dataset_or_a_part_of_it_is_given_by_name(self, dataset, given, names):
        assert list(Client(dataset / given).runs()) == names

    def test_a_step_that_is_added_appears(self, step, folder, dataset, monkeypatch):
        monkeypatch.setattr(run_folder, "FRESH_S", 0)
        client = Client(folder)
        before = client.runs()
        with DatasetWriter(dataset, run="b") as writer:
            writer.write(step)
        after = client.runs()
        assert set(after) - set(before) == {"set/run=b/rank=0/step_0"}
        assert before.items() <= after.items()
        shutil.rmtree(dataset)
        assert list(client.runs()) == ["step.gpurec"]

    def test_a_dataset_that_is_not_read_again_costs_no_reading(self, dataset, monkeypatch):
        folder = RunFolder([dataset])
        monkeypatch.setattr(run_folder, "FRESH_S", 0)
        assert len(folder.runs().by_id) == 3
        monkeypatch.setattr(run_folder, "_listed_steps", None)
        assert len(folder.runs().by_id) == 3

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_file_that_leads_out_of_the_folder_is_not_read(self, folder, dataset, tmp_path, when):
        client = Client(folder)
        [file] = (dataset / "kernels" / "run=a" / "rank=1").iterdir()
        ids = {name: row["id"] for name, row in client.runs().items()}
        file.rename(tmp_path / "secret.parquet")
        file.symlink_to(tmp_path / "secret.parquet")
        if when == "before":
            client = Client(folder)
            refused = {name for name, row in client.runs().items() if row["refused"]}
            assert refused == {"set/run=a/rank=1/step_0"}
        assert is_refusal(client.ask(f"/api/runs/{ids['set/run=a/rank=1/step_0']}"))
        assert not is_refusal(client.ask(f"/api/runs/{ids['set/run=a/rank=0/step_0']}"))

    @pytest.mark.parametrize("given", ["", "run=a/rank=1", "run=a/rank=1/step_0"])
    def test_a_given_part_of_a_dataset_reads_no_link_out_of_it(self, dataset, tmp_path, given):
        client = Client(dataset / given)
        id_ = client.runs()["run=a/rank=1/step_0"]["id"]
        [file] = (dataset / "kernels" / "run=a" / "rank=1").iterdir()
        file.rename(tmp_path / "secret.parquet")
        file.symlink_to(tmp_path / "secret.parquet")
        assert is_refusal(client.ask(f"/api/runs/{id_}"))
        assert Client(dataset / given).runs()["run=a/rank=1/step_0"]["refused"]

    @pytest.mark.parametrize(("given", "name"), [("set", "set"), ("set/run=a", "run=a"), (".", "set")])
    def test_a_damaged_dataset_is_one_row(self, folder, dataset, given, name):
        [file] = (dataset / "steps" / "run=a" / "rank=0").iterdir()
        file.write_bytes(b"junk")
        listed = Client(folder / given).runs()
        assert set(listed) == {name} | ({"step.gpurec"} if given == "." else set())
        assert "part-0.parquet cannot be read" in listed[name]["refused"]

    def test_a_dataset_that_cannot_be_read_is_read_again_when_it_has_changed(self, step, dataset, monkeypatch):
        monkeypatch.setattr(run_folder, "FRESH_S", 0)
        [file] = (dataset / "steps" / "run=a" / "rank=0").iterdir()
        whole = file.read_bytes()
        file.write_bytes(b"junk")
        folder = RunFolder([dataset])
        [refused] = folder.runs().by_id.values()
        with monkeypatch.context() as patch:
            patch.setattr(run_folder, "_listed_steps", None)
            assert list(folder.runs().by_id.values()) == [refused]
        file.write_bytes(whole)
        assert len(folder.runs().by_id) == 3

    def test_steps_of_two_ranks_are_compared(self, folder, dataset):
        client = Client(folder)
        rows = client.runs()
        ids = [rows[f"set/{name}"]["id"] for name in STEPS[1:]]
        assert "kernel_1" in client.ask(f"/api/together?runs={','.join(ids)}&before=1").text


class TestWhoIsAnswered:
    @pytest.mark.parametrize("path", ["/", *DATA])
    def test_nothing_writes(self, client, path):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"):
            assert client.ask(path, method).status_code == 405

    @pytest.mark.parametrize(
        "host",
        ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:80", f"127.0.0.1.evil.example:{PORT}", "",
         "[::]", f"0.0.0.0:{PORT}", f"10.0.0.1:{PORT}"],
    )  # fmt: skip
    def test_a_foreign_host_is_misdirected(self, client, host):
        assert {client.ask(path, host=host).status_code for path in ("/", *DATA)} == {421}

    @pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
    def test_each_name_of_this_machine_is_answered(self, client, host):
        assert client.ask("/api/runs", host=host).status_code == 200

    @pytest.mark.parametrize(
        "origin",
        ["https://evil.example", "null", "http://127.0.0.1", "http://127.0.0.1:9001", f"https://{HOST}", f"http://localhost:{PORT}"],
    )  # fmt: skip
    def test_a_foreign_origin_is_forbidden(self, client, origin):
        for path in ("/", *DATA):
            answer = client.ask(path, origin=origin)
            assert answer.status_code == 403
            assert "access-control-allow-origin" not in answer.headers

    @pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
    def test_a_foreign_site_is_forbidden(self, client, site):
        for path in DATA:
            assert client.ask(path, sec_fetch_site=site, sec_fetch_mode="navigate").status_code == 403
            assert client.ask(path, sec_fetch_site=site, sec_fetch_mode="no-cors").status_code == 403

    def test_the_page_itself_may_be_linked_to_and_not_be_embedded(self, client):
        assert client.ask("/", sec_fetch_site="cross-site", sec_fetch_mode="navigate").status_code == 200
        assert client.ask("/", sec_fetch_site="cross-site", sec_fetch_mode="no-cors").status_code == 403
        assert "frame-ancestors 'none'" in client.ask("/").headers["content-security-policy"]

    @pytest.mark.parametrize("token", ["", "t0ke", "t0ken1", "T0KEN", "é", "t0kent0ken"])
    def test_data_needs_the_token(self, client, token):
        for path in DATA:
            assert client.ask(path, x_collector_token=token.encode()).status_code == 401
            cookie = f"collector-{PORT}={token or 'x'}".encode()
            assert client.ask(path, x_collector_token="", cookie=cookie).status_code == 401
            assert client.ask(f"{path}?token={TOKEN}", x_collector_token="").status_code == 401  # which logs would hold

    def test_the_cookie_is_for_the_page_of_this_server_and_no_script(self, client):
        cookie = client.ask("/api/session").headers["set-cookie"]
        assert {part.strip() for part in cookie.split(";")} == {
            f"collector-{PORT}={TOKEN}",
            "HttpOnly",
            "SameSite=Strict",
            "Path=/",
        }
        answer = client.ask("/api/runs", x_collector_token="", cookie=f"a=b; collector-{PORT}={TOKEN}")
        assert answer.status_code == 200

    def test_the_page_needs_no_token_and_says_nothing(self, client, folder):
        for path in ("/", "/app.js", "/app.css", "/licences"):
            answer = client.ask(path, x_collector_token="")
            assert answer.status_code == 200
            assert str(folder) not in answer.text
            assert TOKEN not in answer.text

    def test_no_other_protocol_is_answered(self, client):
        with pytest.raises(ValueError, match="answers no websocket"):
            asyncio.run(client.app({"type": "websocket"}, None, None))


class TestPaths:
    @pytest.mark.parametrize(
        "path",
        [
            "/api/runs/..%2f..%2fetc%2fpasswd",
            "/api/runs/..%2F",
            "/perfetto/..%2f..%2fetc/passwd",
            "/perfetto/%2e%2e/secret",
            "/perfetto//etc/passwd",
            "/perfetto/..%5c..%5csecret",
            "/perfetto/index.html%00.js",
            "/%252e%252e/secret",
            "/api/runs/%00",
        ],
    )
    def test_no_path_leads_to_a_file(self, client, path):
        answer = client.ask(path)
        assert answer.status_code in (200, 404), answer.text
        assert set(answer.json()) == {"error"}

    @pytest.mark.parametrize(
        "path", ["/app.js/../api/runs", "//evil.example/", "/..", "/./", "/perfetto/../x", "/\\..", "/a\0"]
    )
    def test_no_path_is_tidied_up(self, client, path):
        """As a program sends it that is not a browser."""
        assert client.raw(path) == 404

    @pytest.mark.parametrize("id_", ["0123456789abcdef", "x", "0" * 400, "é", "step.gpurec", "-1"])
    def test_an_unknown_id_is_one_line(self, client, id_):
        for rest in ("", "/bins", "/slices", "/figures", "/answers?key=kernels/name", "/trace"):
            answer = client.ask(f"/api/runs/{id_}{rest}")
            assert "there is no such run" in answer.json()["error"]

    @pytest.mark.parametrize(
        "query",
        ["", "key=", "key=nothing", "key=kernels", "key=__class__", *(f"key=kernels/name&{part}" for part in PARTS)],
    )
    def test_a_question_that_is_none_is_one_line(self, client, query):
        [run] = client.runs().values()
        answer = client.ask(f"/api/runs/{run['id']}/answers?{query}")
        assert answer.status_code == 200
        assert "\n" not in answer.json()["error"]

    def test_every_answer_says_how_it_is_to_be_treated(self, client):
        [run] = client.runs().values()
        for path in ("/", "/app.js", "/api/runs", f"/api/runs/{run['id']}", "/nothing", "/api/runs/x"):
            headers = client.ask(path).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
            assert headers["cache-control"] == "no-store"
            assert headers["cross-origin-resource-policy"] == "same-origin"
            assert "unsafe" not in headers["content-security-policy"]
            assert "http" not in headers["content-security-policy"]

    def test_bytes_are_no_json_whatever_they_begin_with(self, build, tmp_path):
        build.clock["cupti_stop_ns"] = build.clock["wall_stop_ns"] = build.clock["cupti_start_ns"] + FULL * BINS
        build.kernel("gemm", FULL - ord("{"), ord("{")).recording().save(tmp_path / "step.gpurec")
        client = Client(tmp_path)
        [run] = client.runs().values()
        bins, *others = (client.ask(f"/api/runs/{run['id']}/{kind}") for kind in ("bins", "slices", "trace"))
        assert bins.content[:1] == b"{"
        assert {answer.headers["content-type"] for answer in (bins, *others)} == {"application/octet-stream"}

    def test_head_is_answered_without_a_body(self, client):
        answer = client.ask("/api/runs", "HEAD")
        assert (answer.status_code, answer.content) == (200, b"")


class TestFiles:
    @pytest.mark.medium
    def test_what_is_no_trace_is_a_row_with_its_reason(self, client, folder, shared):
        (folder / "empty.pb").write_bytes(b"")
        (folder / "picture.json").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
        (folder / "text.txt").write_text("hello")
        (folder / "page.html").write_text("<html>")
        (folder / "nul.pb").write_bytes(bytes(100_000))
        (folder / "cut.json").write_text('{"traceEvents": [')
        (folder / "deep.json").write_text("[" * 100_000)
        os.mkfifo(folder / "pipe")
        (folder / "link.pb").symlink_to("/etc/passwd")
        (folder / "broken").symlink_to("nowhere")
        (folder / "loop").symlink_to("loop")
        (folder / "etc").symlink_to("/etc")
        for path in sorted((shared / "data" / "gpu_traces" / "broken_derived").rglob("*")):
            if path.is_file():
                (folder / path.name).write_bytes(path.read_bytes())
        for name, run in client.runs().items():
            for rest in ("", "/figures", "/answers?key=kernels/name", "/slices", "/trace"):
                answer = client.ask(f"/api/runs/{run['id']}{rest}")
                assert answer.status_code == 200, (name, rest)
                if is_refusal(answer):
                    assert "Traceback" not in answer.text
                    assert "\n" not in answer.json()["error"]
                    assert str(folder) not in answer.json()["error"]
        refused = {name: run["refused"] for name, run in client.runs().items()}
        assert refused["step.gpurec"] == ""
        assert refused["empty.pb"] == "the file is empty"
        assert refused["picture.json"] == "this is a picture, not a trace"
        assert refused["pipe"] == "a pipe, not a file"
        for name in ("link.pb", "broken", "loop", "etc"):
            assert refused[name] == "a link that leads out of the folder or nowhere"
        for name in ("text.txt", "page.html", "nul.pb", "cut.json", "deep.json"):
            assert refused[name], name

    def test_a_journal_in_segments_is_one_run(self, folder, tmp_path):
        journal = tmp_path / "all" / "dumps" / "run.journal"
        shutil.copytree(SEGMENTS, journal)
        (journal.parent / "latest.journal").symlink_to("run.journal")
        for given in (tmp_path / "all", journal):
            client = Client(given)
            [run] = client.runs().values()
            assert run["name"] == ("run.journal" if given == journal else "dumps/run.journal")
            assert (run["kind"], run["refused"]) == ("journal", "")
            assert run["bytes"] == sum(segment.stat().st_size for segment in journal.iterdir())
            figures = client.ask(f"/api/runs/{run['id']}/figures").json()
            assert figures["kernels"] == len(load(journal).recording.kernels) > 0

    def test_a_segment_that_leads_out_of_the_folder_is_not_opened(self, folder, tmp_path):
        journal = tmp_path / "all" / "run.journal"
        shutil.copytree(SEGMENTS, journal)
        client = Client(tmp_path / "all")
        [run] = client.runs().values()
        first = journal / "000001.journal"
        first.rename(tmp_path / "secret.journal")
        first.symlink_to(tmp_path / "secret.journal")
        assert is_refusal(client.ask(f"/api/runs/{run['id']}"))
        [run] = Client(tmp_path / "all").runs().values()
        assert run["refused"] == "a link that leads out of the folder or nowhere"

    @pytest.mark.parametrize(
        ("schema", "reason"),
        [("{}", "set/schema.json is not the schema of a collector dataset"), (None, "set has no steps")],
    )
    def test_a_dataset_without_steps_is_one_row_with_the_reason(self, folder, schema, reason):
        pytest.importorskip("pyarrow")
        DatasetWriter(folder / "set").close()
        if schema is not None:
            (folder / "set" / SCHEMA_FILE).write_text(schema)
        (folder / "set" / "other.parquet").write_bytes(b"PAR1")
        rows = Client(folder).runs()
        assert set(rows) == {"step.gpurec", "set"}
        assert rows["set"]["refused"] == reason

    @pytest.mark.medium
    def test_the_links_of_a_dataset_are_followed_once_for_all_of_its_steps(self, folder, build, tmp_path, monkeypatch):
        pytest.importorskip("pyarrow")
        with DatasetWriter(tmp_path / "sets" / "set", run="a") as writer:
            for _ in range(20):
                writer.write(build.recording())
        followed = []
        leads_inside = run_folder._leads_inside
        monkeypatch.setattr(
            run_folder, "_leads_inside", lambda path, root: followed.append(path) or leads_inside(path, root)
        )
        assert len(RunFolder([tmp_path / "sets"]).runs().by_id) == 20
        assert 0 < len(followed) == len(set(followed))

    def test_equal_names_in_several_given_folders_have_the_folders_that_differ(self, build, tmp_path):
        pytest.importorskip("pyarrow")
        for run in ("monday", "tuesday"):
            with DatasetWriter(tmp_path / run / "runs", run="a") as writer:
                writer.write(build.recording())
            build.recording().save(tmp_path / run / "step.gpurec")
        build.recording().save(tmp_path / "other.gpurec")
        given = [tmp_path / run / name for run in ("monday", "tuesday") for name in ("runs", "step.gpurec")]
        assert set(Client(*given, tmp_path / "other.gpurec").runs()) == {
            *(f"{run}/runs/run=a/rank=0/step_0" for run in ("monday", "tuesday")),
            *(f"{run}/step.gpurec" for run in ("monday", "tuesday")),
            "other.gpurec",
        }

    def test_a_link_inside_of_the_folder_is_a_run(self, client, folder):
        (folder / "latest.gpurec").symlink_to("step.gpurec")
        assert client.runs()["latest.gpurec"]["refused"] == ""

    def test_a_file_that_became_a_link_outside_is_not_opened(self, client, folder, step, tmp_path):
        [run] = client.runs().values()
        step.save(tmp_path / "secret.gpurec")
        (folder / "step.gpurec").unlink()
        (folder / "step.gpurec").symlink_to(tmp_path / "secret.gpurec")
        assert is_refusal(client.ask(f"/api/runs/{run['id']}"))

    def test_a_folder_without_permission_is_a_row(self, client, folder):
        (folder / "closed").mkdir(mode=0)
        with permissions_hold():
            assert client.runs()["closed"]["refused"] == "a folder that cannot be read: Permission denied"

    def test_a_file_without_permission_is_a_row(self, client, folder):
        (folder / "step.gpurec").chmod(0)
        with permissions_hold():
            assert "Permission denied" in client.runs()["step.gpurec"]["refused"]

    def test_names_are_data(self, client, folder, step):
        names = ["</script><script>alert(1)", EVIL.replace("/", "_")[:100], "a\nb", "=1+1"]
        for name in names:
            step.save(folder / "other.gpurec")
            (folder / "other.gpurec").rename(folder / f"{name}.gpurec".replace("/", "_"))
        Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe.gpurec")).write_bytes((folder / "step.gpurec").read_bytes())
        answer = client.ask("/api/runs")
        assert answer.headers["content-type"] == "application/json"
        assert len(answer.json()["runs"]) == len(names) + 2
        for run in answer.json()["runs"]:
            assert not is_refusal(client.ask(f"/api/runs/{run['id']}"))

    @pytest.mark.medium
    def test_new_and_growing_files_are_noticed(self, client, folder, step, build):
        first = client.ask("/api/runs")
        assert client.ask("/api/runs", if_none_match=first.headers["etag"]).status_code == 304
        [run] = client.runs().values()
        before = client.ask(f"/api/runs/{run['id']}/answers?key=kernels/name").json()
        step.save(folder / "more.gpurec")
        build.kernel("late", 900, 10)
        build.recording().save(folder / "step.gpurec")
        time.sleep(0.6)
        assert set(client.runs()) == {"more.gpurec", "step.gpurec"}
        after = client.ask(f"/api/runs/{run['id']}/answers?key=kernels/name").json()
        assert (before["rows"], after["rows"]) == (2, 3)
        (folder / "step.gpurec").unlink()
        time.sleep(0.6)
        assert is_refusal(client.ask(f"/api/runs/{run['id']}"))

    def test_what_is_not_there_is_said_at_the_start(self, tmp_path):
        with pytest.raises(CollectorError, match="No such file"):
            RunFolder([tmp_path / "nothing"])


class TestAnswers:
    @pytest.mark.medium
    def test_they_are_those_of_the_analysis(self, client, step):
        from collector import analysis
        from collector.web.single_answers import keys

        [run] = client.runs().values()
        for part in ("", "&from=100&to=420"):
            for key in keys():
                data = client.ask(f"/api/runs/{run['id']}/answers?key={key}{part}").json()
                answer = eval(data["python"], {"analysis": analysis, "step": step})
                assert data["rows"] == len(answer), key
                assert data["totals"] == dict(answer.totals), key
                for column, values in zip(answer.columns, data["values"], strict=True):
                    assert values == [None if each != each else each for each in answer[column.name].tolist()], key

    def test_the_part_of_a_step_has_what_overlaps_it(self, client):
        [run] = client.runs().values()
        data = client.ask(f"/api/runs/{run['id']}/answers?key=devices&from=100&to=300").json()
        row = {column["name"]: values[0] for column, values in zip(data["columns"], data["values"], strict=True)}
        assert (row["window_ns"], row["busy_ns"]) == (200, 10 + 60 + 50)
        data = client.ask(f"/api/runs/{run['id']}/answers?key=kernels/name&from=100&to=300").json()
        assert data["part"] == {"start": 100, "end": 300}
        place = [column["name"] for column in data["columns"]].index("count")
        assert dict(zip(data["values"][0], data["values"][place], strict=True)) == {"kernel_0": 2, "kernel_1": 1}

    def test_a_known_answer_is_not_computed_again(self, client, monkeypatch):
        [run] = client.runs().values()
        first = client.ask(f"/api/runs/{run['id']}/answers?key=ops").content
        monkeypatch.setattr("collector.web.page_server.single_answer", None)
        assert client.ask(f"/api/runs/{run['id']}/answers?key=ops").content == first

    def test_whatever_a_question_raises_is_one_line(self, client, monkeypatch):
        [run] = client.runs().values()

        def fails(*_):
            raise RecursionError("too deep")

        monkeypatch.setattr("collector.web.page_server.single_answer", fails)
        answer = client.ask(f"/api/runs/{run['id']}/answers?key=ops")
        assert answer.json() == {"error": "this cannot be answered (RecursionError: too deep)"}


class TestCommand:
    def start(self, *arguments, **environment):
        command = [sys.executable, "-m", "collector", "ui", "--no-browser", *map(str, arguments)]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )

    @pytest.mark.medium
    def test_it_prints_an_address_with_a_token_and_answers_there(self, folder):
        with self.start(folder) as server:
            try:
                line = server.stdout.readline()
                address, _, token = line.split()[0].partition("#token=")
                assert address.startswith("http://127.0.0.1:")
                assert len(token) >= 32
                assert httpx.get(address).status_code == 200
                assert httpx.get(f"{address}api/runs").status_code == 401
                answer = httpx.get(f"{address}api/runs", headers={"x-collector-token": token})
                assert [run["name"] for run in answer.json()["runs"]] == ["step.gpurec"]
            finally:
                server.terminate()
            assert server.wait() == 143
            assert server.stderr.read() == ""

    @pytest.mark.medium
    @pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda ending: ending.name)
    def test_its_temporary_files_end_with_it(self, folder, tmp_path, ending):
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        browser = tmp_path / "browser"
        browser.write_text("#!/bin/sh\n")
        browser.chmod(0o755)
        command = [sys.executable, "-m", "collector", "ui", str(folder)]
        environment = {**os.environ, "TMPDIR": str(temporary), "BROWSER": f"{browser} %s"}
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            preexec_fn=lambda: restore_default(ending),
        ) as server:
            address = server.stdout.readline().split("#")[0]
            assert httpx.get(address).status_code == 200
            assert list(temporary.glob("*/open.html"))
            server.send_signal(ending)
            assert server.wait() == 128 + ending
            assert server.stderr.read() == ""
        assert list(temporary.iterdir()) == []

    @pytest.mark.medium
    def test_a_hangup_that_is_ignored_does_not_end_it(self, folder):
        """It runs under nohup."""
        command = [sys.executable, "-m", "collector", "ui", "--no-browser", str(folder)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
        ) as server:
            try:
                address = server.stdout.readline().split("#")[0]
                server.send_signal(signal.SIGHUP)
                assert httpx.get(address).status_code == 200
            finally:
                server.terminate()
            assert server.wait() == 143

    @pytest.mark.medium
    def test_a_port_in_use_is_one_line(self, folder):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = self.start(folder, "--port", port)
            out, err = done.communicate()
        assert (done.returncode, out) == (2, "")
        remedy = "Give another port with --port, or omit the option to use a free one"
        assert err == f"collector: port {port} is in use. {remedy}\n"

    @pytest.mark.medium
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["nothing"], "nothing: No such file or directory"),
            ([".", "--perfetto", "nothing"], "nothing cannot be read: No such file or directory. Give perfetto-ui.zip"),
            ([".", "--perfetto", "loop"], "loop cannot be read: Too many levels of symbolic links. Give perfetto-ui"),
            ([".", "--perfetto", "empty"], "empty: this is not a copy of Perfetto's page"),
            ([".", "--port", "70000"], "'70000' is not a port"),
        ],
    )
    def test_what_cannot_be_served_is_one_line(self, tmp_path, monkeypatch, arguments, message):
        monkeypatch.chdir(tmp_path)
        Path("loop").symlink_to("loop")
        Path("empty").mkdir()
        done = self.start(*arguments)
        _, err = done.communicate()
        assert done.returncode == 2
        assert message in err
        assert err.count("\n") == 1


def test_only_this_machine_is_listened_to(folder):
    from collector.web.listening import listening_sockets

    sockets, port = listening_sockets(0)
    try:
        assert {each.getsockname()[0] for each in sockets} <= {"127.0.0.1", "::1"}
        assert {each.getsockname()[1] for each in sockets} == {port}
    finally:
        for each in sockets:
            each.close()


@pytest.mark.medium
def test_without_the_extra_it_says_what_to_install(folder, tmp_path):
    (tmp_path / "hidden").mkdir()
    for name in ("starlette", "uvicorn"):
        (tmp_path / "hidden" / f"{name}.py").write_text("raise ImportError")
    command = [sys.executable, "-m", "collector", "ui", str(folder), "--no-browser"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "hidden"), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "collector: starlette is not installed. Run: pip install 'cupti-collector[ui]'\n"


def test_memory_of_opened_runs_is_bounded(folder, step):
    from collector.web.opened_runs import OpenedRuns

    for number in range(5):
        step.save(folder / f"other_{number}.gpurec")
    runs = RunFolder([folder])
    opened = OpenedRuns(runs, max_bytes=1)
    for id_ in runs.runs().by_id:
        opened.answer([id_], "length", lambda given: {"length": given[0].step.recording.clock.window_ns})
    assert len(opened._opened) == 1


def test_files_of_a_program_leave_no_trace_out_of_the_list(build, tmp_path, monkeypatch):
    """The folder is the working directory by default, such as that of a program with many files."""
    for name in ("a.c", "b.c"):
        (tmp_path / name).write_text("/* no trace */\n")
    for name in ("x10.gpurec", "x9.gpurec"):
        build.recording().save(tmp_path / name)
    monkeypatch.setattr(run_folder, "MOST_RUNS", 3)
    runs = RunFolder([tmp_path]).runs()
    assert [run.name for run in runs.by_id.values()] == ["x9.gpurec", "x10.gpurec", "a.c"]
    assert runs.left_out == 1
