"""`collector demo`, compared with the calls of its step."""

import json
import sys
from collections import Counter

import pytest
from timed_programs import run_timed

import collector
from collector.demo.demo_step import BUFFERS, train_step

COMMAND = "import sys; from collector.cli import main; sys.exit(main(sys.argv[1:]))"
HTOD, DTOH = 1, 2  # CUPTI's copy kinds


class Asked:
    """A `DemoGpu` that only writes down what it is asked."""

    description = "nothing"

    def __init__(self):
        self.kernels, self.copies, self.memsets = [], [], []

    def launch(self, kernel, buffer, *, passes, stream):
        self.kernels.append((stream, f"{kernel}<float>"))

    def upload(self, buffer, *, stream):
        self.copies.append((HTOD, BUFFERS[buffer]))

    def download(self, buffer, *, stream):
        self.copies.append((DTOH, BUFFERS[buffer]))

    def clear(self, buffer, *, stream):
        self.memsets.append(BUFFERS[buffer])

    def wait(self, stream, *, after):
        pass

    def synchronize(self):
        pass


@pytest.fixture(scope="module")
def demo(gpu_here, is_simulated, tmp_path_factory):
    """The step that the command has traced, what it printed, and the trace."""
    path = tmp_path_factory.mktemp("demo") / "demo.gpurec"
    options = ["--simulate"] if is_simulated else []
    done = run_timed([sys.executable, "-c", COMMAND, "demo", "-o", str(path), *options])
    assert done.returncode == 0, done.stdout + done.stderr
    step = collector.load(path)
    step.save(path.with_suffix(".json"))
    return step, done.stdout, json.loads(path.with_suffix(".json").read_text())


@pytest.fixture(scope="module")
def asked():
    asked = Asked()
    train_step(asked)
    return asked


def test_it_runs_on_the_card(cuda, is_simulated, demo):
    step, printed, _ = demo
    assert ("a SIMULATED GPU" if is_simulated else cuda.name()) in printed.splitlines()[0]
    assert step.recording.environment["simulated"] == is_simulated


def test_every_kernel_copy_and_set_that_was_asked_for_is_there_and_nothing_else(demo, asked):
    step, _, _ = demo
    kernels = step.kernels
    assert Counter(kernels.names()) == Counter(kernel for _, kernel in asked.kernels)
    in_order = {}
    for stream_id, name in zip(kernels.stream_id.tolist(), kernels.names(), strict=True):
        in_order.setdefault(stream_id, []).append(name)
    wanted = {}
    for stream, kernel in asked.kernels:
        wanted.setdefault(stream, []).append(kernel)
    assert sorted(in_order.values()) == sorted(wanted.values())  # each stream's kernels, in its order
    copies = zip(step.memcpys.copy_kind.tolist(), step.memcpys.num_bytes.tolist(), strict=True)
    assert sorted(copies) == sorted(asked.copies)
    assert step.memsets.num_bytes.tolist() == asked.memsets
    assert step.ledger.launches_seen == len(asked.kernels)
    assert step.ledger.complete, step.ledger.losses()


def test_every_operation_carries_its_annotation(demo):
    step, _, _ = demo
    for table in (step.kernels, step.memcpys, step.memsets):
        assert all(step.recording.annotations_of(table)), table.name
    paths = set(step.recording.annotations_of(step.kernels))
    assert {"forward/layer1/conv", "forward/loss", "backward/layer3/relu", "optimizer/layer2"} <= paths


def test_the_trace_has_the_streams_and_the_copies(demo):
    _, _, trace = demo
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    devices = {event["args"]["device"] for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    assert "/gpu:0/memcpy" in devices
    assert sum("/gpu:0/stream:" in device for device in devices) >= 3, devices
