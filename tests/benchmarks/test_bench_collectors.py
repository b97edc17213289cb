"""The collectors that benchmarks compare: broken or different ones are named, and others keep their figures."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from collector.bench.benchmark_report import Report

pytest.importorskip("scipy")

pytestmark = pytest.mark.simulator

FAKES = {
    "torch/__init__.py": "class cuda:\n    init = staticmethod(lambda: None)",
    "torch/profiler.py": "raise ImportError('libkineto.so: undefined symbol')",
    "triton/__init__.py": "",
    "triton/profiler.py": "def start(name):\n    raise AssertionError('never called so')",
    "cupti/__init__.py": "",
    "cupti/cupti.py": "import os\ndef activity_register_callbacks(*given):\n    os.abort()",
}
# The arms' own processes are started as ever; only that the simulator stands for a GPU is kept from the list of arms.
AS_ON_A_GPU = """
import runpy, sys
sys.path[:0] = sys.argv[1:3]
import _collectors
_collectors.why_missing = lambda collector, simulated: ""
sys.argv = ["overhead.py", "--simulated", "--launches=400", "--rounds=1", "--json", sys.argv[3]]
runpy.run_path(sys.path[0] + "/overhead.py", run_name="__main__")
"""


@pytest.fixture
def collectors(root, monkeypatch):
    monkeypatch.syspath_prepend(root / "benchmarks")
    import _collectors

    return _collectors


@pytest.mark.slow
def test_collectors_that_are_broken_are_named_and_the_others_measured(root, collectors, tmp_path):
    for name, text in FAKES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    file = tmp_path / "overhead.json"
    folders = [str(root / "benchmarks"), str(root / "tests" / "gpu"), str(file)]
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-c", AS_ON_A_GPU, *folders],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    comparison = Report.load(file).comparisons[0]
    ours = {"collector, kernels", "collector, all", "collector, all, journal"}
    assert set(comparison.arms) == {"none", "floor, kernels", "floor, all", *ours}
    assert {*comparison.arms, *comparison.failures} == set(collectors.COLLECTORS)
    reasons = {"kineto": "undefined symbol", "proton": "unexpected keyword", "cupti-python": "ended with signal 6"}
    for arm, why in comparison.failures.items():
        assert reasons[arm.partition(",")[0]] in why, (arm, why)
        assert f"not measured arm '{arm}'" in " ".join(done.stdout.split())


@pytest.mark.slow
def test_every_floor_is_measured_and_each_process_reported(root, tmp_path):
    file = tmp_path / "floors.json"
    options = ["--simulated", "--launches", "200", "--rounds", "1", "--json", str(file)]
    command = [sys.executable, str(root / "benchmarks" / "floors.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = Report.load(file)
    assert [len(each.arms) for each in report.comparisons] == [6, 6, 5, 6]  # nothing is added without a client
    lines = [json.loads(line) for line in (tmp_path / "floors.json.processes").read_text().splitlines()]
    assert [line["arm"] for line in lines] == list(report.comparisons[0].arms)
    assert all(line["a launch"] > 0 and "launches" in line["a launch: seconds"] for line in lines)


def test_what_is_not_installed_is_not_started(collectors, monkeypatch):
    monkeypatch.setattr(collectors.importlib.util, "find_spec", lambda name: None)
    assert collectors.why_missing(collectors.Proton("tree"), simulated=False) == "torch and triton not installed"
    assert collectors.why_missing(collectors.Floor(10), simulated=True) == ""


def test_protons_file_is_counted(collectors, tmp_path):
    def leaf(name, count):
        return {"frame": {"name": name}, "metrics": {"count": count, "time (ns)": 5}, "children": []}

    tree = {"frame": {"name": "ROOT"}, "metrics": {}, "children": [leaf("empty_kernel", 40), leaf("other", 3)]}
    tree["children"][0]["children"] = [leaf("empty_kernel", 2)]
    for data, content, expected in (
        ("tree", [tree, {"CUDA": {"0": {"arch": "90"}}}], 42),
        ("trace", {"traceEvents": [{"name": "empty_kernel"}, {"name": "other"}, {"name": "empty_kernel"}]}, 2),
    ):
        proton = collectors.Proton(data)
        proton.folder = tmp_path / data
        proton.folder.mkdir()
        (proton.folder / f"trace{proton.file}").write_text(json.dumps(content))
        assert proton.kernels() == expected
        proton.write(tmp_path / f"moved-{data}")
        assert json.loads((tmp_path / f"moved-{data}").read_text()) == content
        count, facts = proton.read_back(tmp_path / f"moved-{data}")
        assert (count, facts["JSON"]) == (expected, "yes")


def test_protons_trace_of_several_documents_is_read_and_named(collectors, tmp_path):
    proton = collectors.Proton("trace")
    proton.folder = tmp_path
    slices = [{"ph": "X", "name": "empty_kernel", "cat": "kernel", "tid": 7, "ts": ts, "dur": 2} for ts in (0, 4, 5)]
    lines = [json.dumps({"traceEvents": events}) for events in (slices[:1], slices[1:])]
    (tmp_path / "trace.chrome_trace").write_text("\n".join(lines))
    count, facts = proton.read_back(tmp_path / "trace.chrome_trace")
    assert (count, facts["JSON"]) == (3, "no: 2 documents, one in each line")
    assert facts["overlap without nesting"] == "1 of 3 slices, 1 where the kernel is"
    stamps = proton.stamps()
    assert (len(stamps.start), stamps.bad(), stamps.before_launch()) == (3, 0, None)
    assert collectors.Proton("tree").stamps() is None


def test_cupti_pythons_objects_are_counted(collectors, monkeypatch):
    log, given = [], []

    def record(kind, start, correlation_id):
        return SimpleNamespace(kind=kind, start=start, end=start + 5, correlation_id=correlation_id)

    launches = [record(5, 8, 1), record(4, 10, 1), record(4, 100, 2)]
    records = [[record(10, 9, 1), record(10, 99, 2), record(1, 5, 3)], [*launches, record(10, -5, 4)]]
    cupti = SimpleNamespace(
        activity_register_callbacks=lambda requested, completed: given.extend((requested, completed)),
        activity_enable=lambda kind: log.append(("enable", kind)),
        activity_disable=lambda kind: log.append(("disable", kind)),
        activity_flush_all=lambda flag: given[1](records[flag]),
    )
    monkeypatch.setitem(sys.modules, "cupti", SimpleNamespace(cupti=cupti))
    found = collectors.CuptiPython(10, 1)
    found.start(None)
    assert given[0]() == (collectors.SMALLEST_BUFFER, 0)
    found.stop()
    assert found.kernels() == 3
    assert (found.stamps().bad(), found.stamps().before_launch()) == (1, 1)
    assert log == [("enable", 10), ("enable", 1), ("disable", 10), ("disable", 1)]


def test_pytorchs_profiler_takes_what_it_is_asked(collectors, tmp_path):
    torch = pytest.importorskip("torch")
    kineto = collectors.Kineto("CPU")
    kineto.start(None)
    torch.ones(4).add_(1)
    kineto.stop()
    assert kineto.kernels() == 0
    kineto.write(tmp_path / "trace.json")
    assert "aten::add_" in (tmp_path / "trace.json").read_text()


class FakeTorch:
    """torch as far as `Kineto` uses it; notes what TEARDOWN_CUPTI was at each call."""

    def __init__(self, monkeypatch, events=()):
        self.log = []
        made = SimpleNamespace(
            __enter__=lambda: self.note("start"),
            __exit__=lambda *given: self.note("stop"),
            profiler=SimpleNamespace(kineto_results=SimpleNamespace(events=lambda: list(events))),
        )
        activities = SimpleNamespace(CPU="CPU", CUDA="CUDA")
        profiler = SimpleNamespace(ProfilerActivity=activities, profile=lambda activities: made)
        torch = SimpleNamespace(cuda=SimpleNamespace(synchronize=lambda: self.note("wait")), profiler=profiler)
        autograd = SimpleNamespace(DeviceType=SimpleNamespace(CUDA="CUDA"))
        for name, module in (("torch", torch), ("torch.profiler", profiler), ("torch.autograd", autograd)):
            monkeypatch.setitem(sys.modules, name, module)

    def note(self, what):
        self.log.append((what, os.environ.get("TEARDOWN_CUPTI")))


def test_kineto_tears_cupti_down_where_it_is_asked_to(collectors, monkeypatch):
    monkeypatch.setenv("TEARDOWN_CUPTI", "anything")
    monkeypatch.setattr(collectors, "TEARDOWN_S", 0)
    for teardown, value, waits in ((False, None, 0), (True, "1", collectors.TEARDOWN_CALLS)):
        torch = FakeTorch(monkeypatch)
        kineto = collectors.Kineto("CUDA", teardown=teardown)
        kineto.start(None)
        kineto.stop()
        assert torch.log == [("start", value), ("stop", value), *[("wait", value)] * waits]
        assert kineto.only_afterwards is teardown


def test_kinetos_kernels_and_their_launches_are_found(collectors, monkeypatch):
    def event(name, device, start, correlation):
        fields = {
            "name": name,
            "device_type": device,
            "start_ns": start,
            "duration_ns": 5,
            "correlation_id": correlation,
        }
        return SimpleNamespace(**{field: lambda value=value: value for field, value in fields.items()})

    events = [
        event("cudaLaunchKernel", "CPU", 100, 1), event("cuLaunchKernelEx", "CPU", 200, 2),
        event("aten::add", "CPU", 999, 3), event("Memset", "CUDA", 1, 1), event("empty_kernel", "CUDA", 90, 1),
        event("empty_kernel", "CUDA", 210, 2), event("empty_kernel", "CUDA", 5, 3),
    ]  # fmt: skip
    FakeTorch(monkeypatch, events)
    kineto = collectors.Kineto("CUDA")
    kineto.start(None)
    assert kineto.kernels() == 3
    assert kineto.stamps().launched.tolist() == [100, 200, 0]
    assert (kineto.stamps().bad(), kineto.stamps().before_launch()) == (0, 1)


def test_proton_takes_what_it_is_asked():
    proton = pytest.importorskip("triton.profiler")
    inspect.signature(proton.start).bind("trace", backend="cupti", data="tree")
    inspect.signature(proton.finalize).bind(output_format="chrome_trace")


def test_cupti_python_has_what_is_called():
    cupti = pytest.importorskip("cupti.cupti", exc_type=ImportError)
    for name in ("activity_register_callbacks", "activity_enable", "activity_disable", "activity_flush_all"):
        assert callable(getattr(cupti, name))
