"""Metadata of annotations, from the live session to the profiler's views and the timeline's arrows."""

from __future__ import annotations

import json
import pickle
import threading
import zipfile
from pathlib import Path

import pytest
from reference.in_python import use_python

import collector
from collector import profiler
from collector.protos import OpLogProto, RunMetadata
from collector.recording.annotation_details import Details
from collector.recording.recording import Recording
from collector.stepstats.from_recording import step_stats
from collector.testing import SimulatedGpu
from collector.timeline import Timeline

pytestmark = pytest.mark.simulator

OPTIONS = profiler.ProfileOptionBuilder().with_empty_output().build()
SUFFIXES = (".pb", ".pbtxt", ".gpurec")


def _launch(gpu: SimulatedGpu) -> None:
    with collector.annotate("net"):
        with collector.annotate("embed", bytes=4096):
            gpu.memcpy("HtoD", 4096, stream=7)
        for factor in (1, 2):
            with collector.annotate("fc", op="MatMul", flops=factor * 1_000_000, inputs=["embed"]):
                gpu.launch("sgemm", stream=7, duration_ns=12_000)
        with collector.annotate("loss", op="Softmax", inputs=["fc", "net/embed"]):
            gpu.launch("softmax", stream=7, duration_ns=3_000)


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    """A traced step, and the folder where it is saved in every format that carries what was said."""
    folder = tmp_path_factory.mktemp("step")
    with SimulatedGpu(cuda="12.4") as gpu, collector.trace(stacks=True) as step:
        _launch(gpu)
    for suffix in (*SUFFIXES, ".json"):
        step.save(folder / f"step{suffix}")
    return step, folder


def _profiler(source) -> profiler.Profiler:
    p = profiler.Profiler()
    p.add_recorded_step(0, source)
    return p


def _by_name(message) -> dict[str, object]:
    found, pending = {}, [message]
    while pending:
        node = pending.pop()
        found[node.name] = node
        pending.extend(node.children)
    return found


def test_the_recording_holds_it_row_by_row(step):
    recording = step[0].recording
    names = recording.annotations.recorded_names()
    details_of = [recording.details[number - 1] for number in recording.annotations.details_id.tolist()]
    flops = [(name, details.flops) for name, details in zip(names, details_of, strict=True) if name == "net/fc"]
    assert flops == [("net/fc", 1_000_000), ("net/fc", 2_000_000)]
    assert all(details.stack[-1].function == "_launch" for details in details_of)


def test_a_recording_keeps_it_in_files_and_copies(step, tmp_path):
    recording = step[0].recording
    recording.save(tmp_path / "again.gpurec")
    for copy in (Recording.load(tmp_path / "again.gpurec"), pickle.loads(pickle.dumps(recording))):
        assert copy.details == recording.details
        assert isinstance(copy.details[0], Details)
        assert copy.annotations.details_id.tolist() == recording.annotations.details_id.tolist()


def test_a_file_from_before_there_were_details_has_none(tmp_path):
    """The first version of the format, without what was added to it."""
    kept = Path(__file__).parent.parent / "data" / "formats" / "v1" / "step.gpurec"
    old = tmp_path / "old.gpurec"
    with zipfile.ZipFile(kept) as new, zipfile.ZipFile(old, "w") as archive:
        for name in new.namelist():
            content = new.read(name)
            if name == "meta.json":
                meta = json.loads(content)
                del meta["details"]
                content = json.dumps(meta).encode()
            if name != "annotations/details_id.npy":
                archive.writestr(name, content)
    recording, whole = Recording.load(old), Recording.load(kept)
    assert whole.annotations.details_id.any()
    assert recording.details == ()
    assert not recording.annotations.details_id.any()
    assert len(recording.annotations) == len(whole.annotations)


def test_a_number_beyond_the_details_is_refused(step):
    capture = dict(step[0].recording.to_capture())
    capture["details"] = ()
    with pytest.raises(ValueError, match="beyond the capture's details"):
        Recording.from_capture(capture)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_same_answers(step, suffix):
    live, read = _profiler(step[0].recording), _profiler(step[1] / f"step{suffix}")
    for view in ("scope", "graph", "op", "code"):
        assert read.answer(view, OPTIONS) == live.answer(view, OPTIONS)


def test_flops_bytes_and_types_in_the_views(step):
    p = _profiler(step[1] / "step.pb")
    scopes = _by_name(p.profile_name_scope(OPTIONS))
    assert (scopes["net/fc"].float_ops, scopes["net/fc"].run_count) == (3_000_000, 2)
    assert scopes["net"].total_float_ops == 3_000_000
    assert (scopes["net/embed"].requested_bytes, scopes["net"].total_requested_bytes) == (4096, 4096)
    rows = _by_name(p.profile_operations(OPTIONS))
    assert (rows["MatMul"].float_ops, rows["MatMul"].accelerator_exec_micros) == (3_000_000, 24)
    assert rows["Softmax"].accelerator_exec_micros == 3
    assert "sgemm" not in rows


def test_kernels_can_still_be_asked_for_by_their_own_name(step):
    words = {**OPTIONS, "account_type_regexes": ["sgemm"]}
    assert _profiler(step[1] / "step.pb").profile_name_scope(words).total_accelerator_exec_micros == 24


def test_dataflow_in_the_graph_view(step):
    root = _profiler(step[1] / "step.pb").profile_graph(OPTIONS)
    (net,) = (node for node in root.children if node.name == "net")  # what nobody consumes
    (loss,) = net.children  # what nobody inside it consumes
    assert loss.name == "net/loss"
    nodes = _by_name(loss)
    assert next(child.name for child in nodes["net/fc"].children if "cuda" not in child.name.lower()) == "net/embed"
    assert loss.total_accelerator_exec_micros == root.total_accelerator_exec_micros
    assert "net/fc/sgemm" in nodes


def test_lines_of_code(step):
    root = _profiler(step[1] / "step.pb").profile_python(OPTIONS)
    lines = [node for name, node in _by_name(root).items() if name.startswith("test_annotation_details.py:")]
    assert any(":_launch" in node.name and node.total_accelerator_exec_micros == 24 for node in lines)


def test_labels_and_arrows(step):
    nodes = {node.node_name: node.timeline_label for node in step[0].step_stats.dev_stats[0].node_stats}
    assert nodes["net/fc"] == "net/fc = MatMul(net/embed)"
    assert nodes["net/loss"] == "net/loss = Softmax(net/fc, net/embed)"
    assert nodes["net"] == "net = net()"
    trace = Timeline(step[0].step_stats).generate_chrome_trace_format(show_dataflow=True)
    flows = [event for event in json.loads(trace)["traceEvents"] if event.get("cat") == "DataFlow"]
    assert {event["name"] for event in flows} == {"net/embed", "net/fc"}
    assert {event["ph"] for event in flows} == {"s", "t"}
    events = json.loads((step[1] / "step.json").read_text())["traceEvents"]
    assert any(event.get("args", {}).get("inputs") == "net/fc, net/embed" for event in events)


def test_an_input_that_no_label_can_hold_is_left_out_of_it_alone():
    with SimulatedGpu(cuda="12.4") as gpu, collector.trace() as step:
        with collector.annotate("f(x, y)"):
            gpu.launch("relu", stream=7)
        with collector.annotate("g", inputs=["f(x, y)"]):
            gpu.launch("relu", stream=7)
    nodes = {node.node_name: node.timeline_label for node in step.step_stats.dev_stats[0].node_stats}
    assert nodes["g"] == "g = g()"
    assert "f(x, y)" in _by_name(_profiler(step.recording).profile_graph(OPTIONS).children[-1])


def test_files_whose_names_are_not_utf8_are_saved(tmp_path):
    code = compile("with annotate('a', op='Op\\udcff', stack=True): launch()", "dir\udcff/train.py", "exec")
    with SimulatedGpu(cuda="12.4") as gpu, collector.trace(strict=True) as step:
        exec(code, {"annotate": collector.annotate, "launch": lambda: gpu.launch("relu", stream=7)})
    step.save(tmp_path / "step.pb")
    (details,) = step.recording.details
    assert details.stack[-1].file == "dir\\udcff/train.py"
    assert "Op\\udcff" in _by_name(_profiler(tmp_path / "step.pb").profile_operations(OPTIONS))


def test_types_and_inputs_survive_where_only_step_stats_are_left(step, tmp_path):
    bare = RunMetadata(step_stats=step[0].step_stats)
    root = _profiler(bare).profile_graph(OPTIONS)
    assert "net/embed" in _by_name(_by_name(root)["net/fc"])
    assert "MatMul" in _by_name(_profiler(bare).profile_operations(OPTIONS))


def test_flops_of_several_steps_are_those_of_the_average_run(step):
    p = _profiler(step[1] / "step.pb")
    p.add_recorded_step(1, step[1] / "step.pb")
    assert _by_name(p.profile_name_scope(OPTIONS))["net/fc"].float_ops == 3_000_000
    again = profiler.Profiler.from_profile(p.serialize_to_string())
    assert again.profile_name_scope(OPTIONS) == p.profile_name_scope(OPTIONS)
    assert again.profile_python(OPTIONS) == p.profile_python(OPTIONS)


def test_op_log_and_graph_for_tensorflows_tools(step):
    """With them TensorFlow's own profiler, here ours in its place, sees flops, types, stacks and dataflow."""
    log, graph = profiler.op_log(step[1] / "step.pb"), profiler.graph(step[1] / "step.pb")
    entries = {entry.name: entry for entry in log.log_entries}
    assert (entries["net/fc"].float_ops, list(entries["net/fc"].types)) == (1_500_000, ["MatMul"])
    assert log.id_to_string[entries["net/fc"].code_def.traces[-1].function_id] == "_launch"
    assert {node.name: list(node.input) for node in graph.node}["net/loss"] == ["net/fc", "net/embed"]
    p = profiler.Profiler(graph)
    assert p.add_step(0, step[1] / "step.pb", op_log=OpLogProto.FromString(log.SerializeToString())) > 0.5
    assert _by_name(p.profile_name_scope(OPTIONS))["net/fc"].accelerator_exec_micros == 24


def test_the_same_without_the_extension(step, monkeypatch):
    fast = step_stats(step[0].recording)
    use_python(monkeypatch)
    assert step_stats(step[0].recording) == fast


def test_no_metadata_leaves_the_message_as_it_was():
    with SimulatedGpu(cuda="12.4") as gpu, collector.trace() as step, collector.annotate("a"):
        gpu.launch("relu", stream=7)
    assert not any(node.output for device in step.step_stats.dev_stats for node in device.node_stats)
    assert not step.run_metadata.provenance.annotations
    assert not step.run_metadata.provenance.frames


def test_halves_of_characters_in_names_are_written_out(tmp_path, monkeypatch):
    """As Python has them in names of files that are not UTF-8."""
    half, text = "a\ud800", "a\\ud800"
    here = threading.current_thread()
    monkeypatch.setattr(here, "name", half)
    with SimulatedGpu() as gpu, collector.trace(tmp_path / "step.pb", journal=tmp_path / "step.journal") as step:
        thread = threading.Thread(target=gpu.launch, args=("other",))
        with collector.annotate(half, op=half, inputs=[half]):
            gpu.launch("sgemm")
            thread.start()
            thread.join()
        gpu.synchronize()
    named = dict(zip(step.kernels.names(), step.recording.annotations_of(step.kernels), strict=True))
    assert named == {"sgemm": text, "other": ""}
    assert step.recording.details[0][2:4] == (text, (text,))
    assert text in step.step_stats.dev_stats[0].thread_names.values()
    assert collector.load(tmp_path / "step.pb").step_stats == step.step_stats
