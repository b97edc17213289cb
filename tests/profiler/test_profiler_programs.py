"""Contexts and hooks driven by a program; the traces they open are stand-ins."""

from __future__ import annotations

import enum
import json
import random
import resource
import signal
import threading
from typing import ClassVar

import pytest

import collector
from collector import profiler
from collector.profiler import adapters
from collector.profiler.context import WARMUP_STEPS
from collector.protos import GraphDef, ProfileProto, RunMetadata
from collector.tracing.schedule import Action

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


def test_hook_by_steps_never_traces_the_first_but_counts_it(tmp_path, trace):
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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no interval is given; give one of save_steps, save_secs and schedule"),
        ({"save_steps": 1, "save_secs": 1}, "save_steps and save_secs are given; give one"),
        ({"save_secs": 1, "schedule": collector.schedule()}, "save_secs and schedule are given; give one"),
    ],
)
def test_hook_takes_one_of_three(given, message):
    with pytest.raises(ValueError, match=message):
        profiler.ProfilerHook(**given)


class Windowed(Trace):
    """Notes what is asked of it."""

    calls: ClassVar[list[str]] = []

    def __enter__(self):
        self.calls.append("enter")
        return self

    def __exit__(self, *exc):
        self.calls.append("exit")

    def begin_window(self, step):
        self.calls.append(f"begin {step}")


def test_a_hook_by_a_schedule_keeps_the_trace_open_from_warming_up_on(tmp_path):
    windowed = type("Noted", (Windowed,), {"calls": []})
    schedule = collector.schedule(wait=2, warmup=2, active=2, repeat=2, skip_first=1)
    hook = profiler.ProfilerHook(schedule=schedule, output_dir=tmp_path, open_trace=windowed)
    for _ in adapters.after_each(range(20), hook, first_step=100):
        pass
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [f"timeline-{100 + step}.json" for step in (5, 6, 11, 12)]
    first, second = (["enter", f"begin {step}", "exit", "enter", "exit"] for step in (105, 111))
    assert windowed.calls == first + second


def test_a_hook_by_a_schedule_without_the_begins_of_steps(tmp_path, trace):
    """Step 0 has begun when the hook is first called."""
    hook = profiler.ProfilerHook(schedule=lambda _: Action.RECORD, output_dir=tmp_path, open_trace=trace)
    for step in range(7, 10):
        hook.after_step(step)
    hook.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["timeline-8.json", "timeline-9.json"]
    assert trace.opened == 3


def test_warming_up_with_a_trace_that_cannot_begin_anew_opens_another(tmp_path, trace):
    hook = profiler.ProfilerHook(schedule=collector.schedule(warmup=1), output_dir=tmp_path, open_trace=trace)
    for _ in adapters.after_each(range(4), hook):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["timeline-2.json", "timeline-4.json"]
    assert trace.opened == 4


def test_a_schedule_is_asked_once_for_each_step_in_order(tmp_path, trace):
    asked = []

    def schedule(step):
        asked.append(step)
        return Action.NONE

    hook = profiler.ProfilerHook(schedule=schedule, output_dir=tmp_path, open_trace=trace)
    for step in (3, 6, 9):  # as of a callback that is told of every third step
        hook.before_step(step)
        hook.before_step(step)
        hook.after_step(step)
    hook.after_step(12)
    with profiler.ProfileContext(tmp_path, schedule=schedule, open_trace=trace) as context:
        context.trace_next_step()
        _run(context, 3)
    assert asked == [0, 1, 2, 4, 0, 1, 2]
    assert trace.opened == 1


def test_a_schedule_of_torch_and_one_that_returns_nonsense(tmp_path, trace):
    names = enum.Enum("ProfilerAction", ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"])
    hook = profiler.ProfilerHook(schedule=lambda step: names.RECORD_AND_SAVE, output_dir=tmp_path, open_trace=trace)
    hook.before_step(1)
    assert hook.after_step(1) == tmp_path / "timeline-1.json"
    with pytest.raises(TypeError, match="a schedule returned 7: one of NONE, WARMUP"):
        profiler.ProfilerHook(schedule=lambda _: 7).before_step(1)


def test_a_context_by_a_schedule(tmp_path, trace):
    schedule = collector.schedule(wait=1, warmup=1, active=2)
    with profiler.ProfileContext(tmp_path, schedule=schedule, dump_steps=[9], open_trace=trace) as context:
        _run(context, 10)
    assert list(ProfileProto.FromString((tmp_path / "profile_9").read_bytes()).steps) == [2, 3, 6, 7]
    assert trace.opened == 4 + 3
    with pytest.raises(ValueError, match="trace_steps and schedule are both given; give one"):
        profiler.ProfileContext(tmp_path, [1], schedule=schedule)
    always = collector.schedule()
    with profiler.ProfileContext(tmp_path, schedule=always, dump_steps=[149], open_trace=trace) as context:
        _run(context, 150)
    assert len(ProfileProto.FromString((tmp_path / "profile_149").read_bytes()).steps) == 100


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


# --- TensorFlow's semantics, point by point ----------------------------------------------------------------------


def test_steps_of_the_hook_are_those_of_tensorflows(tmp_path, trace):
    """Its number is the global step after the run: 1, 2, 3, …; with N steps between files the Nth run is the first."""
    for every, files in ((1, [2, 3, 4, 5]), (2, [2, 4]), (4, [4])):
        folder = tmp_path / str(every)
        hook = profiler.ProfilerHook(save_steps=every, output_dir=folder, open_trace=trace)
        written = [hook.after_step(step) for step in range(1, 6)]
        hook.close()
        assert sorted(path.name for path in folder.iterdir()) == [f"timeline-{step}.json" for step in files]
        assert [path for path in written if path] == [folder / f"timeline-{step}.json" for step in files]


def test_the_hooks_clock_starts_with_the_first_step_and_again_with_each_file(tmp_path, trace):
    now = [100.0]
    hook = profiler.ProfilerHook(save_secs=10, output_dir=tmp_path, open_trace=trace, clock=lambda: now[0])
    times = {
        1: 100,
        2: 109,
        3: 110,
        4: 111,
        5: 120,
        6: 121,
        7: 122,
    }  # traced: what begins 10 s after 100, and after 111
    for step, at in times.items():
        now[0] = at
        hook.after_step(step)
    hook.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["timeline-4.json", "timeline-7.json"]


def test_the_hook_waits_for_its_turn_also_where_nothing_can_be_traced(tmp_path, trace):
    trace.unavailable = "no driver"
    hook = profiler.ProfilerHook(save_steps=3, output_dir=tmp_path, open_trace=trace)
    assert [hook.after_step(step) for step in range(1, 8)] == [None] * 7
    assert trace.opened == 2
    assert list(tmp_path.iterdir()) == []


def test_automatic_tracing_of_a_graph_draws_two_of_eleven_until_half_is_covered(tmp_path, trace):
    context = profiler.ProfileContext(tmp_path, dump_steps=[], open_trace=trace)
    graph = GraphDef()
    for number in range(10):
        graph.node.add(name=f"n{number}", op="Op")
    context.profiler.model.add_graph(graph)
    with context:
        _run(context, 150, "train")
    draws = random.Random(111)
    expected = [11, *(step for step in range(12, 100) if draws.randint(0, 10) < 2)]
    assert sorted(context._traced) == expected


@pytest.mark.medium
def test_no_more_than_a_hundred_steps_are_traced(tmp_path, trace):
    with profiler.ProfileContext(tmp_path, dump_steps=[], open_trace=trace) as context:
        for number in range(130):
            _run(context, 1, f"kind {number}")
    assert trace.opened == 100


def test_several_automatic_profiles_of_one_view(tmp_path, trace):
    context = profiler.ProfileContext(tmp_path, trace_steps=[], dump_steps=[], open_trace=trace)
    context.add_auto_profiling("op", OPTIONS, [1])
    context.add_auto_profiling("op", OPTIONS, [3])
    context.add_auto_profiling("scope", OPTIONS, [3])
    with context:
        _run(context, 5)
    assert sorted(context.get_profiles("op")) == [1, 3]
    assert sorted(context.get_profiles("scope")) == [3]
    assert trace.opened == 2


def test_a_dump_holds_all_steps_so_far_and_one_that_never_came_is_reported(tmp_path, trace, caplog):
    with profiler.ProfileContext(tmp_path, trace_steps=[0, 2, 4], dump_steps=[1, 3, 50], open_trace=trace) as context:
        _run(context, 6)
    steps = [list(ProfileProto.FromString((tmp_path / f"profile_{n}").read_bytes()).steps) for n in (1, 3)]
    assert steps == [[0], [0, 2]]
    assert "not written: profile_50; the program made 6 steps" in caplog.text


def _fail(context: profiler.ProfileContext) -> None:
    with context.step():
        raise KeyError


def test_dumps_of_steps_that_did_not_end_or_were_inside_others_are_reported(tmp_path, trace, caplog):
    with profiler.ProfileContext(tmp_path, trace_steps=[0, 1], dump_steps=[0, 2, 3, 4, 5], open_trace=trace) as context:
        _run(context, 1)
        with context.step():
            _run(context, 2)
        with pytest.raises(KeyError):
            _fail(context)
    assert [path.name for path in tmp_path.iterdir()] == ["profile_0"]
    assert (
        "not written: profile_2, profile_3, profile_4: these steps raised an error, or began inside another"
        in caplog.text
    )
    assert "not written: profile_5; the program made 5 steps" in caplog.text


def test_a_profile_that_cannot_be_written_whole_leaves_that_of_before(tmp_path, trace, caplog):
    (tmp_path / "profile_0").write_bytes(b"of before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with profiler.ProfileContext(tmp_path, trace_steps=[0], dump_steps=[0], open_trace=trace) as context:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        try:
            _run(context, 1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["profile_0"]
    assert (tmp_path / "profile_0").read_bytes() == b"of before"
    assert f"cannot write {tmp_path / 'profile_0'}: File too large" in caplog.text


@pytest.mark.parametrize("written", ["context", "hook", "dataset"])
def test_the_exception_of_a_signal_handler_is_no_error_of_writing(tmp_path, trace, monkeypatch, written):
    """A `TimeoutError` is an OSError, as those of a full disk are, which do not end the program."""
    if written == "dataset":
        pytest.importorskip("pyarrow")

    def end_waiting(*_: object, **__: object) -> None:
        raise TimeoutError

    def run() -> None:
        if written == "context":
            with profiler.ProfileContext(tmp_path, trace_steps=[0], dump_steps=[0], open_trace=trace) as context:
                _run(context, 1)
        else:
            dataset = tmp_path / "runs" if written == "dataset" else None
            hook = profiler.ProfilerHook(save_steps=1, output_dir=tmp_path, output=dataset, open_trace=trace)
            hook.after_step(0)
            hook.after_step(1)

    before = signal.signal(signal.SIGALRM, end_waiting)
    try:
        monkeypatch.setattr("collector.profiler.context.atomic_write", end_waiting)
        monkeypatch.setattr("collector.dataset.dataset_writer.DatasetWriter.__init__", end_waiting)
        with pytest.raises(TimeoutError):
            run()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_steps_of_other_threads_run_untraced_meanwhile_and_are_counted(tmp_path, trace):
    numbers: list[int] = []

    def work(context: profiler.ProfileContext) -> None:
        with context.step() as number:
            numbers.append(number)

    with (
        profiler.ProfileContext(tmp_path, trace_steps=range(5), dump_steps=[], open_trace=trace) as context,
        context.step(),
    ):
        thread = threading.Thread(target=work, args=(context,))
        thread.start()
        thread.join(600)
        work(context)  # nor is a step within a step
    assert (numbers, trace.opened) == ([1, 2], 1)


def test_an_exception_of_the_program_passes_and_the_next_step_is_traced(tmp_path, trace):
    with profiler.ProfileContext(tmp_path, trace_steps=[0, 1], dump_steps=[], open_trace=trace) as context:
        with pytest.raises(KeyError), context.step():
            raise KeyError
        _run(context, 1)
    assert context._traced == {1}


def test_a_disabled_context_checks_nothing_and_nests(trace):
    with profiler.ProfileContext("", trace_steps=range(200), enabled=False, open_trace=trace) as outer:
        with profiler.ProfileContext("", enabled=False) as inner:
            _run(inner, 1)
        outer.trace_next_step()
        outer.dump_next_step()
        outer.add_auto_profiling("op", OPTIONS, [0])
        _run(outer, 2)
        with pytest.raises(ValueError, match="never profiled"):
            outer.get_profiles("op")
    assert trace.opened == 0


def test_a_context_that_is_not_open_says_so(tmp_path, trace):
    context = profiler.ProfileContext(tmp_path, open_trace=trace)
    with pytest.raises(profiler.ProfilerError, match="not open"), context.step():
        pass
    with context:
        _run(context, 1)
    with pytest.raises(profiler.ProfilerError, match="not open"), context.step():
        pass


def test_keras_batches_are_steps_of_their_kind(tmp_path, trace):
    with profiler.ProfileContext(tmp_path, trace_steps=[0, 2], dump_steps=[], open_trace=trace) as context:
        callback = adapters.KerasSteps(context)
        callback.set_params({})
        assert callback._implements_train_batch_hooks()
        callback.on_train_begin()
        callback.on_train_batch_begin(0)
        callback.on_train_batch_end(0, {"loss": 1.0})
        callback.on_train_batch_begin(1)  # failed: no end
        callback.on_test_batch_begin(0)
        callback.on_test_batch_end(0)
        callback.on_predict_batch_begin(0)
        callback.on_predict_batch_end(0)
    assert context._traced == {0, 2}
    assert context._seen == {"train", "test"}
