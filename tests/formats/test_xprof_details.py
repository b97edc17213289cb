"""The texts of XProf's profiles about the launch of a kernel and about a copy: each word is in a column or kept."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("hypothesis")

from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.properties import examples

import collector
from collector.formats.chrome_events import ChromeEvents
from collector.formats.xprof_details import ARGUMENTS, TABLES, work_details
from collector.recording.capture import ASYNC_NOT_KNOWN


@pytest.fixture
def load(tmp_path):
    """The recording of a profile with these events (name, arguments) on one stream."""

    def load(*events):
        names = {"process_name": "/device:GPU:0", "thread_name": "Stream #7(Compute)"}
        rows = [{"ph": "M", "pid": 1, "tid": 1, "name": key, "args": {"name": name}} for key, name in names.items()]
        rows += [
            {"ph": "X", "pid": 1, "tid": 1, "ts": 10 * place, "dur": 5, "name": name, "args": arguments}
            for place, (name, arguments) in enumerate(events, start=1)
        ]
        (tmp_path / "host.trace.json").write_text(json.dumps({"traceEvents": rows}))
        return collector.load(tmp_path / "host.trace.json").recording

    return load


def kernel(details):
    return "k", {"kernel_details": details}


def copy(details, name="MemcpyH2D"):
    return name, {"memcpy_details": details}


def test_words_of_other_vendors_and_versions_are_arguments_of_their_row(load):
    recording = load(kernel("private_segment:16 group_segment:8192 grid:8,1,1 block:256,1,1 occ_pct:37.5"))
    (row,) = recording.kernels
    assert (row.grid_x, row.block_x) == (8, 256)
    assert recording.arguments.of_row("kernels", 0) == {
        "group_segment": "8192",
        "occ_pct": "37.5",
        "private_segment": "16",
    }
    assert recording.environment["arguments_without_columns"] == {
        "group_segment": 1,
        "occ_pct": 1,
        "private_segment": 1,
    }


def test_words_without_information_are_no_arguments(load):
    recording = load(
        kernel("regs:16 static_shared:0 dynamic_shared:0 grid:0,0,0 block:0,0,0 occ_pct:0"),
        copy("kind:<unknown> kind_src:unknown kind_dst:device_static size:4 dest:1 async:0"),
    )
    assert "arguments_without_columns" not in recording.environment
    assert recording.memcpys.dst_kind.tolist() == [6]


@pytest.mark.parametrize("size", [10**9, 2**31 - 1])
def test_grids_may_be_as_large_as_cuda_allows(load, size):
    assert load(kernel(f"grid:{size},1,1 block:32,1,1")).kernels.grid_x.tolist() == [size]


@pytest.mark.parametrize("word", ["grid:2147483648,1,1", "grid:8", "regs:65536", "regs:many", "shm:-1"])
def test_values_that_no_column_holds_are_kept(load, word):
    recording = load(kernel(f"{word} block:32,1,1"))
    assert not any(getattr(recording.kernels, column)[0] for column in ("grid_x", "registers_per_thread"))
    assert recording.arguments.of_row("kernels", 0) == dict([word.split(":")])


def test_copies_state_their_target_and_whether_the_call_waited(load):
    recording = load(
        copy("size:4 dest:6 async:1"),
        copy("kind_src:device kind_dst:device num_bytes:8 dest:4294967295 async:0", "MemcpyP2P"),
        copy("size:4"),
        copy("kind:DtoH size:4 async:2", "copy"),
        ("Memset", {"memset_details": "kind:device size:16 async:1"}),
        ("Memset", {"memset_details": "kind:device size:16 dest:1"}),
    )
    copies = recording.memcpys
    assert copies.is_async.tolist() == [1, 0, ASYNC_NOT_KNOWN, ASYNC_NOT_KNOWN]
    assert copies.dst_device_id.tolist() == [6, 2**32 - 1, 0, 0]
    assert copies.copy_kind.tolist() == [1, 10, 1, 2]
    assert recording.memsets.is_async.tolist() == [1, ASYNC_NOT_KNOWN]
    assert recording.arguments.of_row("memcpys", 3) == {"async": "2"}
    assert recording.arguments.of_row("memsets", 1) == {"dest": "1"}


def test_a_copy_without_details_has_the_kind_of_its_own_name(load):
    recording = load(("MemcpyD2H", {}), copy("size:4"), ("Memset", {}), ("MemcpyD2D", {}), kernel("regs:8"))
    assert recording.memcpys.copy_kind.tolist() == [2, 1, 8]
    assert recording.memsets.memory_kind.tolist() == [0]


def test_words_name_no_folders_of_a_user(load):
    recording = load(kernel("source:/home/someone/work/train.py"))
    assert "someone" not in recording.arguments.of_row("kernels", 0)["source"]


def test_a_timeline_shows_nothing_of_a_copy_that_is_not_stated(load, tmp_path):
    load(copy("size:4 dest:6 async:1"), copy("size:4 dest:0"), ("Memset", {})).save(tmp_path / "step.json")
    events = json.loads((tmp_path / "step.json").read_text())["traceEvents"]
    asked = ("is_async", "from_device", "from_context", "to_device", "to_context")
    shown = [
        {key: event["args"][key] for key in asked if key in event["args"]}
        for event in events
        if event.get("cat") in ("memcpy", "memset")
    ]
    assert shown.count({"is_async": 1, "to_device": 6, "to_context": 0}) == shown.count({}) // 2 == 2
    again = collector.load(tmp_path / "step.json").recording
    assert again.memcpys.is_async.tolist() == [1, ASYNC_NOT_KNOWN]
    assert again.memsets.is_async.tolist() == [ASYNC_NOT_KNOWN]


ENDS = ("src_device_id", "src_context_id", "dst_device_id", "dst_context_id")


@pytest.mark.parametrize("suffix", [".xplane.pb", ".json", ".pb", ".gpurec"])
@pytest.mark.parametrize("is_async", [0, 1, ASYNC_NOT_KNOWN])
def test_copies_of_our_own_files_come_back(build, tmp_path, suffix, is_async):
    ends = dict(zip(ENDS, (1, 2, 0, 3), strict=True))
    build.memcpy(1000, is_async=is_async, copy_kind=10, **ends).memcpy(4000, is_async=is_async)
    given = build.memset(9000, is_async=is_async, value=255).recording()
    given.save(tmp_path / f"step{suffix}")
    again = collector.load(tmp_path / f"step{suffix}").recording
    for column in ("is_async", *ENDS):
        assert getattr(again.memcpys, column).tolist() == getattr(given.memcpys, column).tolist()
    assert (again.memsets.is_async.tolist(), again.memsets.value.tolist()) == ([is_async], [255])


def test_kineto_does_not_state_whether_a_call_waited(tmp_path):
    event = {
        "ph": "X",
        "ts": 1,
        "dur": 5,
        "pid": 0,
        "tid": 7,
        "name": "Memcpy HtoD",
        "args": {"device": 0, "stream": 7},
    }
    events = [event | {"cat": "gpu_memcpy"}, event | {"cat": "gpu_memset", "name": "Memset (Device)"}]
    (tmp_path / "torch.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    recording = collector.load(tmp_path / "torch.json").recording
    assert recording.memcpys.is_async.tolist() == recording.memsets.is_async.tolist() == [ASYNC_NOT_KNOWN]


READ = {
    "kernels": {"regs": "8", "shm": "1024", "grid": "8,1,1"},
    "memcpys": {"size": "4", "async": "1", "dest": "6", "kind": "HtoD", "kind_src": "pinned"},
    "memsets": {"size": "4", "async": "1", "kind": "device"},
}
"""Table -> words that columns take."""
OF_TABLES = {word for words in READ.values() for word in words.items()}
KEYS = st.one_of(st.sampled_from(["new", "é", "_1", *ARGUMENTS]), st.from_regex(r"\A\w{1,4}\Z"))
VALUES = st.text(st.characters(exclude_categories=("Cs", "Z", "Cc")), min_size=1, max_size=6)
OTHERS = st.dictionaries(KEYS.filter(lambda key: key not in dict(OF_TABLES)), VALUES, max_size=6)


@pytest.mark.medium
@settings(max_examples=examples(100))
@given(
    stated=st.lists(
        st.tuples(st.sampled_from(ARGUMENTS), st.sets(st.sampled_from(sorted(OF_TABLES))), OTHERS),
        min_size=1,
        max_size=6,
    ),
    taken=st.sets(KEYS),
)
@example(stated=[("kernel_details", set(), {f"w{number}": f"{number}" for number in range(300)})], taken=set())
def test_each_word_is_in_a_column_or_an_argument(stated, taken):
    rows = [(argument, {**dict(sorted(known)), **others}) for argument, known, others in stated]
    texts = [(argument, " ".join(["bare", *map(":".join, words.items())])) for argument, words in rows]
    events = [{"ph": "X", "ts": 1, "name": "k", "args": {argument: text}} for argument, text in texts]
    found = ChromeEvents([json.dumps({"traceEvents": events}).encode()])
    details = work_details(found, found.rows("X"))
    for table in TABLES:
        columns = details.unread(table, {*taken, *ARGUMENTS})
        assert len(columns) <= 100 + len(ARGUMENTS)
        for row, (argument, words) in enumerate(rows):
            given_back = {key: value for key, column in columns.items() if (value := column.value(row)) is not None}
            together = given_back.pop(argument).split(" ")
            assert together.pop(0) == "bare"
            assert given_back.keys().isdisjoint({*taken, *ARGUMENTS})
            given_back |= dict(word.split(":", 1) for word in together)
            assert given_back == {key: value for key, value in words.items() if READ[table].get(key) != value}
