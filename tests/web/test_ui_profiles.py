"""tfprof's views by the server: every option of profiler-ui, with the answers of collector prof."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

import collector
from collector.profiler.api import Profiler
from collector.profiler.commands import OPTIONS, parse
from collector.profiler.profile_options import Options
from collector.protos import RunMetadata
from collector.web.opened_runs import RefusedError
from collector.web.page_server import Served, page_server
from collector.web.profile_answers import profile_answer
from collector.web.run_folder import PROFILE, RunFolder

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")

PROFILER_UI = {
    "select": "bytes,peak_bytes,residual_bytes,output_bytes,micros,accelerator_micros,cpu_micros,params,float_ops,"
    "occurrence",
    "order_by": "micros",
    "max_depth": "10000",
    "min_bytes": "0",
    "min_float_ops": "0",
    "min_micros": "0",
    "min_occurrence": "0",
    "min_params": "0",
    "account_type_regexes": ".*",
    "account_displayed_op_only": "true",
    "hide_name_regexes": "",
    "show_name_regexes": ".*",
    "start_name_regexes": ".*",
    "trim_name_regexes": "",
    "step": "-1",
}
"""Every option that profiler-ui sends, with its defaults."""


@pytest.fixture
def steps(build):
    """Two steps with annotations."""
    for number in range(6):
        build.call("cudaLaunchKernel_v7000", 10 + 100_000 * number, 20, correlation_id=number + 1)
        build.annotation(f"layer{number % 2}/conv", 5 + 100_000 * number, 60, number + 100, number + 1)
        build.kernel(f"kernel_{number % 3}", 50 + 100_000 * number, 60_000, correlation_id=number + 1)
    return build.recording()


def ask(folder, *paths, profiles=()):
    """Answers of a server of a folder."""
    app = page_server(Served(RunFolder([folder] if folder else [], profiles), "runs"), port=80, token="t")

    async def asked():
        transport = httpx.ASGITransport(app)
        headers = {"x-collector-token": "t", "host": "127.0.0.1:80"}
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:80", headers=headers) as client:
            listed = (await client.get("/api/runs")).json()["runs"]
            return listed, [(await client.get(f"/api/runs/{listed[0]['id']}{path}")).json() for path in paths]

    return asyncio.run(asked())


def query(view, options):
    return f"/profile?{httpx.QueryParams({'view': view, **options})}"


@pytest.mark.parametrize("view", ["scope", "graph", "op"])
def test_the_text_is_that_of_the_command(steps, tmp_path, view):
    steps.save(tmp_path / "step.gpurec")
    _, [answer] = ask(tmp_path, query(view, PROFILER_UI))
    words = [word for name, value in PROFILER_UI.items() for word in (f"-{name}={value}",)]
    profiler = Profiler()
    profiler.add_recorded_step(0, tmp_path / "step.gpurec")
    command = parse([view, *words], Options())
    report = profiler.reporter.ask(view, command.options)
    assert answer["text"] == report.text
    message = report.message
    depth = answer["values"][1]
    assert answer["rows"] == len(depth) > 1
    assert answer["values"][0][0] == message.name
    names = [column["name"] for column in answer["columns"]]
    assert answer["values"][names.index("total_micros")][0] == 1000 * message.total_exec_micros
    again = eval(answer["python"], {"profiler": profiler, "Options": Options})
    assert again == message


def test_a_profile_of_profile_context_has_the_views_and_no_timeline(steps, tmp_path):
    profiler = Profiler()
    steps.save(tmp_path / "step.pb")
    profiler.add_step(7, collector.load(tmp_path / "step.pb").run_metadata)
    (tmp_path / "step.pb").unlink()
    (tmp_path / "profile_100").write_bytes(profiler.serialize_to_string())
    listed, [answer, step] = ask(tmp_path, query("scope", {"select": "micros"}), "")
    assert [run["kind"] for run in listed] == [PROFILE]
    assert (
        answer["text"] == profiler.reporter.ask("scope", parse(["scope", "-select", "micros"], Options()).options).text
    )
    assert "a profile has no timeline" in step["error"]
    other = tmp_path / "elsewhere"
    (tmp_path / "profile_100").rename(other)
    listed, [again] = ask(None, query("scope", {"select": "micros"}), profiles=[other])
    assert listed[0]["name"] == "elsewhere"
    assert again["text"] == answer["text"]


def test_what_the_command_says_beside_its_answer_stands_in_the_page(tmp_path):
    """The share of the nodes that ran in the step that is asked for, and tfprof's notice."""
    profiler = Profiler()
    for step, names in ((1, "ab"), (2, "abcd")):
        metadata = RunMetadata()
        device = metadata.step_stats.dev_stats.add(device="/job:localhost/replica:0/task:0/gpu:0")
        for name in names:
            device.node_stats.add(node_name=name, all_start_micros=1, op_end_rel_micros=1, all_end_rel_micros=1)
        profiler.add_step(step, metadata)
    (tmp_path / "profile_2").write_bytes(profiler.serialize_to_string())
    asked = [query("op", {"select": "micros", "step": step}) for step in ("-1", "1", "2")]
    _, [both, first, second] = ask(tmp_path, *asked)
    assert both["notes"] == ["50.0% to 100.0% of the profile's nodes ran in each of the 2 steps."]
    assert first["notes"] == ["50.0% of the profile's nodes ran in the step."]
    assert second["notes"] == []
    [notice] = profile_answer(profiler, "run", "op", {"step": "2"})["notes"]  # which a profile does not keep
    assert notice.startswith("Found accelerator operation but misses accelerator stream stats!")


@pytest.mark.parametrize(
    ("view", "options", "message"),
    [
        ("nothing", {}, "no view 'nothing'"),
        ("scope", {"nothing": "1"}, "no option -nothing"),
        ("scope", {"max_depth": "x"}, "option -max_depth is a number, not 'x'"),
        ("scope", {"select": "nothing"}, "option -select has no value 'nothing'"),
        ("scope", {"show_name_regexes": "("}, "not a regular expression"),
        ("scope", {"step": "9"}, "Options -step=9 not found"),
        ("scope", {"output": "file:outfile=/tmp/written"}, "the page itself shows the answer"),
        ("scope", {"-output": "file:outfile=/tmp/written"}, "the page itself shows the answer"),
        ("code", {}, "No code trace information"),
    ],
)
def test_what_cannot_be_asked_is_one_line(steps, tmp_path, view, options, message):
    steps.save(tmp_path / "step.gpurec")
    _, [answer] = ask(tmp_path, query(view, options))
    assert message in answer["error"]
    assert "\n" not in answer["error"]


@pytest.mark.medium
@pytest.mark.parametrize(
    "option", ["show_name_regexes", "hide_name_regexes", "start_name_regexes", "trim_name_regexes"]
)
def test_an_expression_that_would_not_end_is_refused(build, monkeypatch, option):
    build.kernel("a" * 40, 100, 60_000)
    profiler = Profiler()
    profiler.add_recorded_step(0, build.recording())
    monkeypatch.setattr("collector.web.text_search.LONGEST_S", 0.5)
    with pytest.raises(RefusedError, match=r"was ended after 0\.5 s"):
        profile_answer(profiler, "run", "scope", {option: "(.*a+)+b"})
    monkeypatch.undo()
    assert profile_answer(profiler, "run", "scope", {"show_name_regexes": ".*aa"})["text"]


def test_a_foreign_profile_is_a_row_with_its_reason(tmp_path):
    (tmp_path / "profile_1").write_bytes(b"hello, this is not a profile" * 100)
    listed, [answer] = ask(tmp_path, query("scope", {}))
    assert "profile_1" in answer["error"]
    assert str(tmp_path) not in json.dumps([listed, answer])


def test_everything_of_profiler_ui_can_be_chosen():
    from collector.web.profile_answers import profile_choices

    choices = profile_choices()
    assert set(PROFILER_UI) <= {name for name, _ in choices["options"]} == set(OPTIONS) - {"output"}
    assert set(PROFILER_UI["select"].split(",")) <= set(choices["attributes"])
    assert {"name", "bytes", "micros", "accelerator_micros", "cpu_micros", "params", "float_ops", "occurrence"} <= set(
        choices["orders"]
    )
    assert [(name, view) for name, view, _ in choices["presets"]] == [
        ("Profile Trainable Variables", "scope"),
        ("Profile Float Operations", "op"),
        ("Profile Time and Memory", "code"),
    ]
    for _, view, options in choices["presets"]:
        parse([view, *(f"-{name}={value}" for name, value in options.items())], Options())


@pytest.mark.medium
def test_a_graph_with_its_step_is_a_profile(shared, tmp_path):
    """`collector ui --graph_path … --run_meta_path …` shows what `collector prof` answers about the same files."""
    folder = shared / "data" / "tf" / "inputs" / "mlp_adam"
    files = [f"--graph_path={folder / 'graph.pb.gz'}", f"--run_meta_path={folder / 'run_meta_0.pb.gz'}"]
    command = [sys.executable, "-m", "collector", "ui", "--no-browser", *files]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            address, _, token = server.stdout.readline().split()[0].partition("#token=")
            with httpx.Client(base_url=address, headers={"x-collector-token": token}, timeout=600) as client:
                [run] = client.get("/api/runs").json()["runs"]
                answer = client.get(f"/api/runs/{run['id']}{query('scope', {'select': 'params'})}").json()
        finally:
            server.terminate()
    profiler = Profiler(folder / "graph.pb.gz")
    profiler.add_step(0, folder / "run_meta_0.pb.gz")
    assert run["name"] == "profile of graph.pb.gz"
    options = parse(["scope", "-select", "params"], Options()).options
    assert answer["text"] == profiler.reporter.ask("scope", options).text


def test_an_op_log_without_a_graph_is_refused(capsys):
    from collector.cli import main

    assert main(["ui", "--op_log_path", "log.pb", "--no-browser"]) == 2
    assert capsys.readouterr().err.startswith("collector: --op_log_path belongs to a graph or its steps")
