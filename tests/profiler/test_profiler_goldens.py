"""The profiler's answers are those of TensorFlow 2.21's own, to the byte and to the field.

The cases are read from the shared data; see its README for how they were made.
"""

from __future__ import annotations

import functools
import gzip
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest
from google.protobuf import text_format

from collector.errors import InvalidFileError
from collector.profiler import api, inputs, oplog
from collector.protos import GraphDef, OpLogProto, PprofProfile, ProfileProto, RunMetadata

SHARED = Path(os.environ.get("COLLECTOR_SHARED", Path(__file__).resolve().parents[3] / "shared"))
DATA = SHARED / "data" / "tf"
COMPARE = SHARED / "tools" / "compare_tfprof.py"
SLOW = ("resnet_small", "multi_resnet_small", "gru_while", "mlp_adam", "multi_cpu3", "cluster_ps_worker")
"""Programs whose answers are megabytes, and three that are asked what a program on one GPU is asked."""
SAMPLED = "gpu_mlp_adam"
"""The program that is asked most; a quick run asks it each fourth question."""


@functools.cache
def _cases() -> list[dict]:
    if not (DATA / "manifest.json").is_file():
        return []
    manifest = json.loads((DATA / "manifest.json").read_text())
    return [case for case in manifest["cases"] if case["kind"] != "timeline"]


def _role(case: dict) -> str:
    """Which test a case belongs to."""
    if case["kind"] != "tfprof":
        return case["kind"]
    return (
        "crash" if case.get("oracle_crash") else case["cmd"] if case["cmd"] in ("sequence", "serialize") else "answer"
    )


def _parameters(role: str) -> list:
    cases = [case for case in _cases() if _role(case) == role]
    if not cases:
        why = f"no golden data: {DATA} is missing; set COLLECTOR_SHARED to the shared folder"
        return [pytest.param(None, marks=pytest.mark.skip(reason=why))]
    return [
        pytest.param(case, id=case["id"], marks=[pytest.mark.slow] if _is_slow(case["id"], number) else [])
        for number, case in enumerate(cases)
    ]


def _is_slow(name: str, number: int) -> bool:
    program = name.split("/")[1]
    return program in SLOW or (program == SAMPLED and number % 4 != 0)


@functools.cache
def _compare():
    spec = importlib.util.spec_from_file_location("compare_tfprof", COMPARE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _bytes(path: str) -> bytes:
    data = (DATA / path).read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _text(path: str) -> str:
    return _bytes(path).decode("utf-8", "surrogateescape")


def _source(case_inputs: dict, name: str) -> Path | None:
    return DATA / case_inputs[name] if case_inputs.get(name) else None


@functools.lru_cache(maxsize=2)
def _profiler(key: str) -> api.Profiler:
    """A profiler with the inputs of a case; neighbouring cases share one, as a user's calls would."""
    given = json.loads(key)
    if given.get("profile"):
        return api.Profiler.from_profile(DATA / given["profile"])
    graph, op_log = (_source(given, name) for name in ("graph", "op_log"))
    if "steps" not in given:
        return api._one_step(graph, _source(given, "run_meta"), op_log)
    profiler = api.Profiler(graph, op_log)
    for step in given["steps"]:
        more = {name: _source(step, name) for name in ("graph", "op_log")}
        profiler.add_step(step["step"], DATA / step["run_meta"], **more)
    return profiler


def _assert_message(message, golden: str) -> None:
    """Field for field. Most answers are equal as text, and then no field need be looked at."""
    expected = _text(golden)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        text = text_format.MessageToString(message)
        if text == expected:
            return
        compare = _compare()
        differences: list[str] = []
        compare.diff(compare.norm(compare.parse(text)), compare.norm(compare.parse(expected)), "", differences)
    finally:
        sys.setrecursionlimit(limit)
    assert not differences, differences[:3]


def _assert_files(golden: dict, folder: Path) -> None:
    expected = dict(golden.get("files", {}))
    profile = expected.pop("pprof.pbtxt", None)
    if profile is not None:
        written, text = inputs.load(folder / "prof.gz", PprofProfile), _text(profile)
        assert text_format.MessageToString(written) == text or written == text_format.Parse(text, PprofProfile())
        (folder / "prof.gz").unlink()
    assert sorted(path.name for path in folder.iterdir()) == sorted(expected)
    for name, path in expected.items():
        written = (folder / name).read_text(encoding="utf-8", errors="surrogateescape")
        assert written == _text(path)


def _stdout(golden: dict) -> str:
    return _text(golden["stdout"]) if "stdout" in golden else golden.get("stdout_text", "")


def _ask(profiler: api.Profiler, call: dict):
    if call["cmd"] == "advise":
        return profiler.advise(call.get("advise_options"))
    return profiler._profile(call["cmd"], {**call["options"], "output": call["output"]})


def _check(profiler: api.Profiler, call: dict, golden: dict, folder: Path, capsys) -> None:
    message = _ask(profiler, call)
    _assert_message(message, golden["node"])
    _assert_files(golden, folder)
    assert capsys.readouterr().out == _stdout(golden)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The folder that relative output names of a case mean."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", _parameters("answer"))
def test_answer(case, folder, capsys):
    given = case["inputs"]
    garbage = [name for name in ("graph", "run_meta", "op_log") if str(given.get(name)).endswith("garbage.bin")]
    for name in garbage:  # TensorFlow takes it for nothing; we say so, and the answer without it is TensorFlow's
        kind = {"graph": GraphDef, "run_meta": RunMetadata, "op_log": OpLogProto}[name]
        with pytest.raises(InvalidFileError, match=f"no {kind.DESCRIPTOR.name}"):
            inputs.load(DATA / given[name], kind)
        given = {**given, name: None}
    if case["id"] == "tfprof/bad/nonsense/cmd":
        with pytest.raises(api.OptionError, match="no view 'nonsense'"):
            api.profile(cmd="nonsense")
        return
    profiler = _profiler(json.dumps(given))
    _check(profiler, case, case["golden"], folder, capsys)


@pytest.mark.medium
@pytest.mark.parametrize("case", _parameters("sequence"))
def test_sequence_of_calls_on_one_profiler(case, tmp_path, monkeypatch, capsys):
    profiler = _profiler(json.dumps(case["inputs"]))
    for number, part in enumerate(case["sequence"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        _check(profiler, part["call"], part["golden"], folder, capsys)


@pytest.mark.medium
@pytest.mark.parametrize("case", _parameters("serialize"))
def test_serialized_profile(case):
    profiler = _profiler(json.dumps(case["inputs"]))
    written = ProfileProto.FromString(profiler.serialize_to_string())
    _assert_message(written, case["golden"]["node"])


@pytest.mark.parametrize("case", _parameters("crash"))
def test_crashes_are_answers(case, folder):
    """Where TensorFlow's process dies we answer with the root alone."""
    profiler = _profiler(json.dumps(case["inputs"]))
    message = _ask(profiler, case)
    assert message.name == "_TFProfRoot"
    assert not message.children


def _flops_and_types(op_log: OpLogProto) -> dict[str, tuple[int, list[str]]]:
    entries = {entry.name: (entry.float_ops, list(entry.types)) for entry in op_log.log_entries}
    return {name: values for name, values in entries.items() if values != (0, [])}


@pytest.mark.parametrize("case", _parameters("op_log"))
def test_merged_op_log(case):
    """Flops and types; the stacks in the goldens are known to the live program only."""
    given = case["inputs"]
    graph = inputs.load(DATA / given["graph"], GraphDef)
    user = inputs.load(DATA / given["op_log_user"], OpLogProto) if given.get("op_log_user") else None
    run_meta = inputs.load(DATA / given["run_meta"], RunMetadata) if given.get("run_meta") else None
    trainable = json.loads((DATA / given["trainable_variables"]).read_text())
    if run_meta is not None:
        graph = oplog.fill_shapes(graph, run_meta)
    merged = oplog.merge_default(graph, user, trainable)
    assert _flops_and_types(merged) == _flops_and_types(inputs.load(DATA / case["golden"], OpLogProto))


@pytest.mark.parametrize("case", _parameters("graph_filled"))
def test_filled_graph(case):
    graph = inputs.load(DATA / case["inputs"]["graph"], GraphDef)
    run_meta = inputs.load(DATA / case["inputs"]["run_meta"], RunMetadata)
    assert oplog.fill_shapes(graph, run_meta) == inputs.load(DATA / case["golden"], GraphDef)
