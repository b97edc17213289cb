"""`collector demo` on a real GPU, compared with the calls of its step."""

import json
from collections import Counter

import pytest

from collector.demo import demo_step as demo

HTOD, DTOH = 1, 2  # CUPTI's copy kinds


class Asked:
    """A `DemoGpu` that only writes down what it is asked."""

    description = "nothing"

    def __init__(self):
        self.kernels, self.copies, self.memsets = [], [], []

    def launch(self, kernel, buffer, *, passes, stream):
        self.kernels.append((stream, f"{kernel}<float>"))

    def upload(self, buffer, *, stream):
        self.copies.append((HTOD, demo.BUFFERS[buffer]))

    def download(self, buffer, *, stream):
        self.copies.append((DTOH, demo.BUFFERS[buffer]))

    def clear(self, buffer, *, stream):
        self.memsets.append(demo.BUFFERS[buffer])

    def wait(self, stream, *, after):
        pass

    def synchronize(self):
        pass


@pytest.fixture(scope="module")
def traced(real_gpu, tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "demo.json"
    step, what = demo.run_demo(path)
    return step, what, json.loads(path.read_text())


@pytest.fixture(scope="module")
def asked():
    asked = Asked()
    demo.train_step(asked)
    return asked


def test_it_runs_on_the_card(cuda, traced):
    step, what, _ = traced
    assert what == cuda.name()
    assert not step.recording.environment["simulated"]


def test_every_kernel_copy_and_set_that_was_asked_for_is_there_and_nothing_else(traced, asked):
    step, _, _ = traced
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


def test_every_operation_carries_its_annotation(traced):
    step, _, _ = traced
    for table in (step.kernels, step.memcpys, step.memsets):
        assert all(step.recording.annotations_of(table)), table.name
    paths = set(step.recording.annotations_of(step.kernels))
    assert {"forward/layer1/conv", "forward/loss", "backward/layer3/relu", "optimizer/layer2"} <= paths


def test_the_trace_has_the_streams_and_the_copies(traced):
    _, _, trace = traced
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    devices = {event["args"]["device"] for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    assert "/gpu:0/memcpy" in devices
    assert sum("/gpu:0/stream:" in device for device in devices) >= 3, devices
