"""Contexts and hooks driven by a program; the traces they open are stand-ins."""

from __future__ import annotations

import json

import pytest

from collector import profiler
from collector.profiler import adapters
from collector.profiler.context import WARMUP_STEPS
from collector.protos import ProfileProto, RunMetadata

OPTIONS = profiler.ProfileOptionBuilder().with_empty_output().build()


class Trace:
    """Records one kernel."""

    unavailable = None
    opened = 0

    def __init__(self):
        type(self).opened += 1
        self.run_metadata = RunMetadata()
        device = self.run_metadata.step_stats.dev_stats.add(device="/gpu:0/stream:all")
        device.node_stats.add(node_name="op:k", all_start_micros=10, op_end_rel_micros=4, all_end_rel_micros=4)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None


@pytest.fixture
def trace():
    """A kind of trace that counts how often it was opened."""
    return type("Counted", (Trace,), {"opened": 0})


def _run(context, count, kind=""):
    for _ in range(count):
        with context.step(kind):
            pass


def test_chosen_steps_are_traced_and_dumped(tmp_path, trace):
    with profiler.ProfileContext(tmp_path / "p", trace_steps=[2, 4], dump_steps=[4, 5], open_trace=trace) as context:
        _run(context, 7)
    assert trace.opened == 2
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == ["profile_4", "profile_5"]
    written = ProfileProto.FromString((tmp_path / "p" / "profile_4").read_bytes())
    assert list(written.steps) == [2, 4]


def test_automatic_tracing_waits_and_takes_every_kind_once(tmp_path, trace):
    with profiler.ProfileContext(tmp_path, open_trace=trace) as context:
        _run(context, WARMUP_STEPS + 1, "train")
        assert trace.opened == 0
        _run(context, 5, "train")
        _run(context, 5, "eval")
    assert trace.opened == 2


def test_next_step_on_demand(tmp_path, trace):
    with profiler.ProfileContext(tmp_path, trace_steps=[], dump_steps=[], open_trace=trace) as context:
        context.trace_next_step()
        context.dump_next_step()
        _run(context, 3)
    assert trace.opened == 1
    assert [path.name for path in tmp_path.iterdir()] == ["profile_0"]


def test_automatic_profiles(tmp_path, trace):
    context = profiler.ProfileContext(tmp_path, trace_steps=[], dump_steps=[], open_trace=trace)
    context.add_auto_profiling("op", OPTIONS, [1])
    with context:
        _run(context, 3)
    assert context.get_profiles("op")[1].children[0].name == "k"
    with pytest.raises(ValueError, match="never profiled"):
        context.get_profiles("scope")
    with pytest.raises(ValueError, match="no view"):
        context.add_auto_profiling("nonsense", OPTIONS, [1])


def test_debug_writes_run_metadata(tmp_path, trace):
    with profiler.ProfileContext(tmp_path, trace_steps=[0], dump_steps=[], debug=True, open_trace=trace) as context:
        _run(context, 1)
    assert "stream:all" in (tmp_path / "run_meta_0").read_text()


def test_a_disabled_context_does_nothing(tmp_path, trace):
    with profiler.ProfileContext(tmp_path, trace_steps=[0], enabled=False, open_trace=trace) as context:
        _run(context, 2)
    assert context.profiler is None
    assert trace.opened == 0


def test_contexts_do_not_nest_and_need_a_folder(tmp_path, trace):
    with profiler.ProfileContext(tmp_path), pytest.raises(profiler.ProfilerError, match="open already"):
        profiler.ProfileContext(tmp_path).__enter__()
    with pytest.raises(ValueError, match="folder"):
        profiler.ProfileContext("")
    with pytest.raises(ValueError, match="at most 100"):
        profiler.ProfileContext(tmp_path, trace_steps=range(101))


def test_hook_by_steps_never_traces_the_first(tmp_path, trace):
    hook = profiler.ProfilerHook(save_steps=3, output_dir=tmp_path, open_trace=trace)
    for _ in adapters.after_each(range(10), hook):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"timeline-{step}.json" for step in (3, 6, 9)]
    assert json.loads((tmp_path / "timeline-3.json").read_text())["traceEvents"]


def test_hook_by_seconds(tmp_path, trace):
    now = [0.0]
    hook = profiler.ProfilerHook(save_secs=10, output_dir=tmp_path, open_trace=trace, clock=lambda: now[0])
    for step in range(6):
        now[0] += 4
        hook.after_step(step)
    assert [path.name for path in tmp_path.iterdir()] == ["timeline-4.json"]


@pytest.mark.parametrize(("given", "said"), [({}, "neither"), ({"save_steps": 1, "save_secs": 1}, "both")])
def test_hook_takes_one_of_two(given, said):
    with pytest.raises(ValueError, match=said):
        profiler.ProfilerHook(**given)


def test_adapters(tmp_path, trace):
    hook = profiler.ProfilerHook(save_steps=1, output_dir=tmp_path, open_trace=trace)
    callback = adapters.KerasCallback(hook)
    callback.set_model(None)
    callback.on_epoch_begin(0)
    for batch in range(3):
        callback.on_train_batch_end(batch)
    callback.on_train_end()
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(AttributeError):
        callback.nonsense  # noqa: B018

    class Optimizer:
        def register_step_post_hook(self, after):
            self.after = after

    optimizer = Optimizer()
    adapters.on_optimizer(optimizer, hook, first_step=10)
    optimizer.after(optimizer, (), {})
    optimizer.after(optimizer, (), {})
    assert (tmp_path / "timeline-11.json").exists()
    hook.close()


def test_plain_loop(tmp_path, trace):
    with profiler.ProfileContext(tmp_path, trace_steps=[1], dump_steps=[], open_trace=trace) as context:
        assert list(adapters.steps("abc", context)) == ["a", "b", "c"]
    assert trace.opened == 1
