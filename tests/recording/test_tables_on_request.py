"""Tables that a capture or a file may lack: the memory operations, which came later and are recorded on request."""

import json
import zipfile

import numpy as np
import pytest

import collector
from collector.errors import InvalidFileError
from collector.options import KINDS, KINDS_ON_REQUEST, TraceOptions
from collector.recording.recording import Recording
from collector.recording.schema import LATER_TABLES, SCHEMA


def without(source, target, *tables):
    """A recording's file as one that knew nothing of ``tables`` would have written it."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "meta.json":
                meta = json.loads(content)
                meta["columns"] = {table: each for table, each in meta["columns"].items() if table not in tables}
                content = json.dumps(meta)
            if name.partition("/")[0] not in tables:
                new.writestr(name, content)


def test_a_file_from_before_memory_was_recorded_is_read_whole(build, tmp_path):
    build.launch(1, 1000).kernel("sgemm", 5000, correlation_id=1).recording().save(tmp_path / "new.gpurec")
    without(tmp_path / "new.gpurec", tmp_path / "old.gpurec", *LATER_TABLES)
    old, new = (Recording.load(tmp_path / f"{name}.gpurec") for name in ("old", "new"))
    assert old.kernels.names() == ["sgemm"]
    assert len(old.memory_operations) == 0
    assert {n: v.dtype.str.lstrip("<|") for n, v in old.memory_operations.columns.items()} == SCHEMA[
        "memory_operations"
    ]
    assert old.ledger == new.ledger
    old.save(tmp_path / "again.gpurec")
    assert (tmp_path / "again.gpurec").read_bytes() == (tmp_path / "new.gpurec").read_bytes()


def test_a_file_that_lacks_another_table_is_damaged(build, tmp_path):
    build.recording().save(tmp_path / "new.gpurec")
    without(tmp_path / "new.gpurec", tmp_path / "cut.gpurec", "kernels")
    with pytest.raises(InvalidFileError, match="damaged"):
        Recording.load(tmp_path / "cut.gpurec")


def test_a_source_may_leave_the_table_out(build, fake_source):
    capture = build.kernel("sgemm", 5000).capture()
    del capture["tables"]["memory_operations"]
    with collector.trace(source=fake_source(capture)) as step:
        pass
    assert len(step.recording.memory_operations) == 0
    assert len(step.recording.kernels) == 1


def test_memory_is_recorded_only_where_it_is_named():
    assert "memory_operations" in KINDS_ON_REQUEST
    assert not set(KINDS_ON_REQUEST) & set(TraceOptions().kinds)
    assert TraceOptions(kinds=(*KINDS, "memory_operations")).kinds[-1] == "memory_operations"
    with pytest.raises(ValueError, match=r"unknown kind 'memory': choose from kernels, .*, memory_operations"):
        TraceOptions(kinds=("memory",))


def test_memory_operations_are_in_order_of_time_whatever_their_stream(build, start_ns):
    for at, stream, device in ((300, 7, 0), (100, 0xFFFFFFFF, 1), (200, 9, 0)):
        build.raw("memory_operations", start_ns=start_ns + at, stream_id=stream, device_id=device, operation=1)
    recording = build.recording()
    assert (recording.memory_operations.start_ns - start_ns).tolist() == [100, 200, 300]
    assert recording.ledger.memory_operations == 3


@pytest.mark.parametrize(
    ("at", "where"), [(0, "invalid"), (-1, "early"), (1_000_001, "late")], ids=["no time", "early", "late"]
)
def test_memory_operations_outside_the_step_are_kept_apart(build, start_ns, at, where):
    build.raw("memory_operations", start_ns=start_ns + at if at else 0, operation=1, address=512)
    recording = build.recording()
    assert len(recording.memory_operations) == 0
    assert getattr(recording, where).memory_operations.address.tolist() == [512]
    assert not recording.ledger.complete


def test_a_variable_has_a_name_and_other_memory_has_none(build, start_ns):
    for name in ("", "weights"):
        build.raw("memory_operations", start_ns=start_ns + 1, name_id=build.text(name))
    assert sorted(build.recording().memory_operations.names()) == ["", "weights"]


def test_addresses_do_not_lose_bits_on_the_way_to_a_file(build, start_ns, tmp_path):
    build.raw("memory_operations", start_ns=start_ns + 1, address=(1 << 63) + 512, num_bytes=1 << 40)
    build.recording().save(tmp_path / "step.gpurec")
    loaded = Recording.load(tmp_path / "step.gpurec").memory_operations
    assert loaded.address.tolist() == [(1 << 63) + 512]
    assert loaded.num_bytes.dtype == np.uint64
