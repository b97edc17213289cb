"""Programs that drive contexts and hooks: work between steps, failures, and unwritable files."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import pytest

from collector import profiler
from collector.errors import SessionActiveError
from collector.profiler import adapters
from collector.protos import RunMetadata


class Trace:
    """Records nothing, and remembers what was done in which order."""

    unavailable = None
    refuses = False

    def __init__(self, log: list[str]) -> None:
        self._log = log
        self.run_metadata = RunMetadata()

    def __enter__(self) -> Trace:
        if self.refuses:
            raise SessionActiveError("another session is open", "End it first")
        self._log.append("open")
        return self

    def __exit__(self, *exc: object) -> None:
        self._log.append("close")


@pytest.fixture
def log() -> list[str]:
    return []


def _hook(folder: Any, log: list[str], every: int = 2) -> profiler.ProfilerHook:
    return profiler.ProfilerHook(save_steps=every, output_dir=folder, open_trace=lambda: Trace(log))


def _refusing() -> Trace:
    trace = Trace([])
    trace.refuses = True
    return trace


def test_a_step_that_is_announced_is_traced_from_there(tmp_path, log):
    hook = _hook(tmp_path, log)
    for step in range(1, 5):
        log.append("between")
        hook.before_step(step)
        log.append("step")
        hook.after_step(step)
    traced = ["between", "open", "step", "close"]
    assert log == ["between", "step", *traced, "between", "step", *traced]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["timeline-2.json", "timeline-4.json"]


def test_steps_may_be_announced_now_and_then(tmp_path, log):
    hook = _hook(tmp_path, log, every=1)
    hook.before_step(1)
    hook.after_step(1)  # was announced, so nothing begins before the next is, or is over
    assert log == []
    hook.after_step(2)
    hook.after_step(3)
    hook.close()
    assert [path.name for path in tmp_path.iterdir()] == ["timeline-3.json"]


def test_an_announced_step_that_never_ended_has_no_file(tmp_path, log):
    hook = _hook(tmp_path, log, every=1)
    for step in (1, 2, 2):
        hook.before_step(step)
    hook.after_step(2)
    assert log == ["open", "close", "open", "close"]
    assert [path.name for path in tmp_path.iterdir()] == ["timeline-2.json"]


def test_the_seconds_are_counted_from_the_begin_of_the_first_step(tmp_path, log):
    now = [0.0]
    hook = profiler.ProfilerHook(save_secs=10, output_dir=tmp_path, open_trace=lambda: Trace(log), clock=lambda: now[0])
    for step in range(1, 6):  # begin at 0, 4, 8, 12 and 16, and take 3 each
        hook.before_step(step)
        now[0] += 3
        hook.after_step(step)
        now[0] += 1
    assert [path.name for path in tmp_path.iterdir()] == ["timeline-4.json"]


def test_loading_a_batch_is_no_part_of_a_step(tmp_path, log):
    def batches():
        for number in range(3):
            log.append("load")
            yield number

    for _ in adapters.after_each(batches(), _hook(tmp_path, log)):
        log.append("train")
    assert log == ["load", "train", "load", "open", "train", "close", "load", "train"]
    assert [path.name for path in tmp_path.iterdir()] == ["timeline-2.json"]


def test_a_round_that_is_left_is_no_step(tmp_path, log):
    for number in adapters.after_each(range(5), _hook(tmp_path / "hook", log)):
        if number == 1:
            break
    with profiler.ProfileContext(
        tmp_path, trace_steps=range(5), dump_steps=[], open_trace=lambda: Trace(log)
    ) as context:
        for number in adapters.steps(range(5), context):
            if number == 1:
                break
        for _ in adapters.steps(range(1), context):
            pass
    assert log == ["open", "close"] * 4
    assert not (tmp_path / "hook").exists()
    assert context._traced == {0, 2}


def test_a_program_that_traces_itself_goes_on_and_it_is_reported(tmp_path, caplog):
    hook = profiler.ProfilerHook(save_steps=1, output_dir=tmp_path / "hook", open_trace=_refusing)
    for _ in adapters.after_each(range(3), hook):
        pass
    with profiler.ProfileContext(tmp_path, trace_steps=[1], dump_steps=[1], open_trace=_refusing) as context:
        assert list(adapters.steps("abc", context)) == ["a", "b", "c"]
    assert context._traced == set()
    assert caplog.text.count("no timeline now: another session is open") == 2
    assert "step 1 is not traced: another session is open" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["profile_1"]


def test_what_cannot_be_written_does_not_end_the_program(tmp_path, log, caplog):
    (tmp_path / "file").write_text("no folder")
    hook = _hook(tmp_path / "file" / "timelines", log, every=1)
    assert [hook.after_step(step) for step in range(1, 4)] == [None] * 3
    hook.close()
    with profiler.ProfileContext(
        tmp_path / "file", trace_steps=[0], dump_steps=[0], open_trace=lambda: Trace(log)
    ) as context:
        assert list(adapters.steps("ab", context)) == ["a", "b"]
    assert caplog.text.count("cannot write") == 3
    assert "profile_0: " in caplog.text


def test_the_context_ends_a_step_that_has_no_end(tmp_path, log):
    with profiler.ProfileContext(
        tmp_path, trace_steps=range(9), dump_steps=[], open_trace=lambda: Trace(log)
    ) as context:
        callback = adapters.KerasSteps(context)
        callback.on_train_batch_begin(0)
    assert log == ["open", "close"]
    callback.on_train_batch_end(0)  # too late
    assert context._traced == set()


def test_ends_that_are_reported_beside_the_training_are_refused_once(tmp_path, log, caplog):
    """As Keras does on some backends with what is not in a list."""
    with profiler.ProfileContext(tmp_path, trace_steps=[], dump_steps=[], open_trace=lambda: Trace(log)) as context:
        for callback in (adapters.KerasCallback(_hook(tmp_path, log, every=1)), adapters.KerasSteps(context)):
            caplog.clear()
            for batch in range(3):
                callback.on_train_batch_begin(batch)
                thread = threading.Thread(target=callback.on_train_batch_end, args=(batch,))
                thread.start()
                thread.join()
            callback.on_train_end()
            assert caplog.text.count("write callbacks=[...], a list") == 1
    assert list(tmp_path.iterdir()) == []
    assert log == ["open", "close"] * 2  # batches 1 and 2 of the hook's, which have no end


def test_copies_have_no_part_in_a_trace_that_is_under_way(tmp_path, log):
    hook = profiler.ProfilerHook(save_steps=1, output_dir=tmp_path)
    assert pickle.loads(pickle.dumps(adapters.KerasCallback(hook)))._hook._folder == tmp_path
    hook = _hook(tmp_path, log, every=1)
    hook.after_step(1)
    twin = copy.deepcopy(hook)
    twin.close()
    assert log == ["open"]
    hook.close()
    assert log == ["open", "close"]


def test_what_a_callback_does_not_say_is_reported_clearly(tmp_path, log):
    with pytest.raises(AttributeError, match="'KerasCallback' object has no attribute 'model'"):
        adapters.KerasCallback(_hook(tmp_path, log)).model  # noqa: B018
