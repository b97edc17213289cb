"""Profiles for pprof, read back field by field, and opened with Google's own tool."""

from __future__ import annotations

import gzip
import shutil
import subprocess

import pytest

from collector import profiler
from collector.profiler.profile_options import Options, Output
from collector.profiler.profiler_errors import ViewError
from collector.protos import GraphDef, PprofProfile, RunMetadata


def _step() -> RunMetadata:
    """``train`` calls ``layer`` twice from one line; each has a kernel."""
    metadata = RunMetadata()
    host = metadata.step_stats.dev_stats.add(device="/cpu:0")
    device = metadata.step_stats.dev_stats.add(device="/gpu:0/stream:all")
    frames = [("main.py", 3, "<module>", 1), ("main.py", 9, "train", 7), ("net/layers.py", 20, "layer", 15)]
    for file, line, function, first_line in frames:
        metadata.provenance.frames.add(file=file, line=line, function=function, first_line=first_line)
    for name, start, duration, depth in (("net", 100, 90, 2), ("net/a", 110, 20, 3), ("net/b", 140, 30, 3)):
        host.node_stats.add(node_name=name, all_start_micros=start, op_end_rel_micros=duration)
        metadata.provenance.annotations.add(path=name, runs=1, flops=duration, stack=range(depth))
    for name, start, duration in (("net/a:gemm", 115, 40), ("net/b:relu", 160, 7), ("net/b:relu", 170, 5)):
        device.node_stats.add(node_name=name, all_start_micros=start, op_end_rel_micros=duration)
    return metadata


def _write(view: str, attribute: str, path) -> PprofProfile:
    p = profiler.Profiler()
    p.add_recorded_step(0, _step())
    output = Output("pprof", {"outfile": str(path)})
    report = p.reporter.ask(view, Options(max_depth=100, select=frozenset([attribute]), output=output))
    ((_, content),) = report.files
    path.write_bytes(content)
    return PprofProfile.FromString(gzip.decompress(content))


def _samples(found: PprofProfile) -> dict[str, tuple[list[str], list[int]]]:
    """Node -> its functions from the innermost out, its values."""
    texts = found.string_table
    functions = {each.id: texts[each.name] for each in found.function}
    locations = {each.id: functions[each.line[0].function_id] for each in found.location}
    return {
        texts[sample.label[0].str]: ([locations[id_] for id_ in sample.location_id], list(sample.value))
        for sample in found.sample
    }


def test_lines_of_code_are_locations(tmp_path):
    found = _write("code", "accelerator_micros", tmp_path / "p.gz")
    samples = _samples(found)
    assert samples["net/a/gemm"] == (["layers:layer", "main:train", "main:<module>"], [1, 40])
    assert samples["net/b/relu"] == (["layers:layer", "main:train", "main:<module>"], [2, 12])
    assert samples["net"] == (["main:train", "main:<module>"], [1, 0])
    assert sorted(each.line[0].line for each in found.location) == [3, 9, 20]


def test_scopes_are_locations(tmp_path):
    samples = _samples(_write("scope", "float_ops", tmp_path / "p.gz"))
    assert samples["net/a"] == (["net/a", "net"], [1, 20])
    assert samples["net/a/gemm"] == (["net/a/gemm", "net/a", "net"], [1, 0])


@pytest.mark.parametrize("view", ["op", "graph"])
def test_other_views_have_none(view, tmp_path):
    with pytest.raises(ViewError, match="no pprof output"):
        _write(view, "micros", tmp_path / "p.gz")


def test_a_tensorflow_graph_has_scopes_in_no_profile():
    graph = GraphDef()
    graph.node.add(name="a", op="Add")
    output = Output("pprof", {"outfile": "unused"})
    with pytest.raises(ViewError, match="Only 'code' view"):
        profiler.Profiler(graph).reporter.ask("scope", Options(output=output))


def _pprof(*words: str) -> str:
    """What Google's pprof prints."""
    go = shutil.which("go")
    command = [shutil.which("pprof")] if shutil.which("pprof") else [go, "tool", "pprof"] if go else None
    if command is None:
        pytest.skip(
            "PPROF'S OWN READING WAS NOT CHECKED: neither pprof nor go is installed (apt-get install golang-go)"
        )
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_pprof_adds_up_lines_of_code(tmp_path):
    _write("code", "accelerator_micros", tmp_path / "p.gz")
    listing = _pprof("-top", "-sample_index=accelerator_micros", str(tmp_path / "p.gz"))
    assert "Type: accelerator_micros" in listing
    assert "52us total" in listing
    rows = {line.split()[-1]: line.split() for line in listing.splitlines() if "%" in line and ":" in line.split()[-1]}
    assert rows["layers:layer"][0] == "52us"
    assert rows["main:<module>"][3] == "52us"


def test_pprof_draws_scopes_as_a_tree(tmp_path):
    _write("scope", "micros", tmp_path / "p.gz")
    listing = _pprof("-tree", "-nodefraction=0", "-edgefraction=0", "-sample_index=micros", str(tmp_path / "p.gz"))
    assert "| net/a/gemm" in listing
    assert "File: recorded step" in listing
    assert "Sum of accelerator execution time and cpu" in _pprof("-comments", str(tmp_path / "p.gz"))


def test_pprof_knows_the_node_of_each_sample(tmp_path):
    _write("scope", "micros", tmp_path / "p.gz")
    listing = _pprof("-tags", "-sample_index=micros", str(tmp_path / "p.gz"))
    assert "net/a/gemm" in listing
