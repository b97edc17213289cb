"""The extension makes the lines of an XSpace as the reference does, and describes nodes that are alike once."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from reference.plain_xspace_lines import known_activities, plain_lines

from collector.formats.xplane import stats_fields
from collector.protos import Activity, DeviceStepStats, NodeExecStats, StepStats
from collector.protos.xplane_pb2 import XLine, XStat
from collector.runtime.extension import convert_extension
from collector.timeline.op_arguments import NOTHING

EPOCH_NS = 1_700_000_000_000_000_000
KINDS = [Activity.UNKNOWN, Activity.KERNEL, Activity.MEMCPY, Activity.API_CALL, Activity.ANNOTATION]


class Names:
    """The numbers of names in the order in which they are asked for."""

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}
        self.described = 0

    def of(self, name: object) -> int:
        return self.numbers.setdefault(name, len(self.numbers) + 1)

    def describe(self, message: bytes, activity: bytes, is_copy: bool) -> tuple[int, bytes]:
        """What depends on names and on columns that no two nodes share by chance."""
        self.described += 1
        node, columns = NodeExecStats.FromString(message), Activity.FromString(activity)
        stats = [XStat(metadata_id=self.of(node.timeline_label), int64_value=columns.grid_x)]
        return self.of((node.node_name, columns.kind, columns.num_bytes, is_copy)), stats_fields(stats)


def random_activity(rng: random.Random) -> Activity:
    kind = rng.choice(KINDS[1:])
    own = {"process_id": rng.choice([0, 5, 6])} if kind == Activity.API_CALL else {"grid_x": rng.choice([0, 8])}
    return Activity(kind=kind, stream_id=7, num_bytes=rng.choice([0, 64]), external_id=rng.randrange(1 << 40), **own)


def random_node(rng: random.Random, *, has_activity: bool) -> NodeExecStats:
    node = NodeExecStats(
        node_name=rng.choice(["a:k", "conv", ""]),
        timeline_label=rng.choice(["", "k regs:1", "conv = Conv()"]),
        all_start_nanos=EPOCH_NS + rng.choice([0, 5, 5, 1000, rng.randrange(10_000), 1 << 62 if has_activity else 2]),
        all_end_rel_nanos=rng.choice([0, 7, 7, rng.randrange(500), -3]),
        thread_id=rng.choice([0, 3, 4]),
        correlation_id=rng.choice([0, 1, 2, rng.randrange(1 << 32)]),
        op_end=rng.choice([0, 1]),
    )
    if has_activity and rng.random() < 0.8:
        node.activity.CopyFrom(random_activity(rng))
    return node


def random_step(rng: random.Random) -> StepStats:
    """A step with a host, a stream whose activities are under ``stream:all``, and copies."""
    step = StepStats()
    count = rng.randrange(40)
    host = [random_node(rng, has_activity=True) for _ in range(count)]
    stream = [random_node(rng, has_activity=False) for _ in range(count)]
    everything = []
    for node in stream:
        twin = NodeExecStats.FromString(node.SerializeToString())
        twin.activity.CopyFrom(Activity(kind=Activity.KERNEL, stream_id=7, grid_x=rng.choice([0, 8])))
        everything.append(twin)
    if rng.random() < 0.2:
        del everything[:1]  # then nobody knows which activity is whose
    step.dev_stats.append(DeviceStepStats(device="/cpu:0", node_stats=host, thread_names={3: "main"}))
    step.dev_stats.append(DeviceStepStats(device="/gpu:0/stream:all", node_stats=everything))
    step.dev_stats.append(DeviceStepStats(device="/gpu:0/stream:7", node_stats=stream))
    copies = [random_node(rng, has_activity=False) for _ in range(3)] + stream[: count // 3] * rng.choice([1, 2])
    rng.shuffle(copies)
    step.dev_stats.append(DeviceStepStats(device="/gpu:0/memcpy", node_stats=copies))
    return step


def events_of(step: StepStats, details=NOTHING):
    data = step.SerializeToString()
    return convert_extension.StepEvents(data, is_run_metadata=False, event_records=[], op_details=details)


@pytest.mark.parametrize("seed", range(60))
def test_lines_are_those_of_the_reference(seed):
    rng = random.Random(seed)
    step = random_step(rng)
    host = step.dev_stats[0].node_stats
    runs = sorted({(node.all_start_nanos, node.all_end_rel_nanos, node.thread_id) for node in host[::3]})
    places = [rng.randrange(2) for _ in runs]
    stated = [[("flops", "3")], [("stack", "[]")]]
    starts, durations, threads = map(list, zip(*runs, strict=True)) if runs else ([], [], [])
    events = events_of(step, (starts, durations, threads, places, stated))
    detail_stats = [stats_fields([XStat(metadata_id=99, int64_value=place)]) for place in (0, 1)]
    for place, device in enumerate(step.dev_stats):
        count = len(device.node_stats)
        options = {
            "origin_ns": EPOCH_NS - rng.randrange(1000),
            "shift_ns": rng.choice([0, 500]),
            "by_thread": rng.random() < 0.5,
            "by_process": rng.random() < 0.5,
            "processes": rng.choice([{}, {0: 5}, {3: 6}]),
            "first_correlation": rng.choice([None, 0, 1 << 32]),
            "correlation_stat": rng.choice(["correlation_id", "launch_correlation_id"]),
            "causes": rng.choice([[], [(EPOCH_NS + 5, 1)], [(EPOCH_NS, 1), (EPOCH_NS + 900, 2)]]),
            "flows": {rng.randrange(count): rng.randrange(1 << 40) for _ in range(3)} if count else {},
            "event_stats": {1: stats_fields([XStat(metadata_id=98, int64_value=4)])},
            "only": rng.choice([None, sorted(rng.sample(range(count), count // 2))]),
        }
        names, plain_names = Names(), Names()
        lines, drawn, untimed = events.lines(
            place, describe=names.describe, stat_number=names.of, detail_stats=detail_stats, **options
        )
        by_run = {run: detail_stats[at] for run, at in zip(runs, places, strict=True)}
        plain = plain_lines(step, place, by_run, describe=plain_names.describe, stat_number=plain_names.of, **options)
        # Names are numbered in the order of their first use, which is that of the reference.
        found = [(thread, other, process, XLine.FromString(data)) for thread, other, process, data in lines]
        assert (found, drawn, untimed) == plain
        assert names.described <= plain_names.described


def identity(node: NodeExecStats) -> tuple[object, ...]:
    return node.node_name, node.timeline_label, node.all_start_nanos, node.all_end_rel_nanos


@pytest.mark.parametrize("seed", range(20))
def test_nodes_beside_others_are_those_that_the_others_lack(seed):
    rng = random.Random(seed)
    step = random_step(rng)
    copies, stream = ([identity(node) for node in step.dev_stats[place].node_stats] for place in (3, 2))
    surplus = Counter(copies)
    surplus.subtract(stream)
    expected = []
    for place, node in enumerate(copies):
        if surplus[node] > 0:
            surplus[node] -= 1
            expected.append(place)
    (beside,) = events_of(step).nodes_beside([3], [2])
    assert beside == expected
    assert events_of(step).nodes_beside([], [2]) == []


def test_nodes_that_differ_in_times_and_ids_alone_are_described_once():
    """Annotations have numbers of their own, and are as many as the loop's turns."""
    nodes = [
        NodeExecStats(
            node_name="layer",
            all_start_nanos=EPOCH_NS + at,
            correlation_id=at + 1,
            activity=Activity(kind=Activity.ANNOTATION, external_id=at + 1, depth=at % 3, details_id=at),
        )
        for at in range(100)
    ]
    step = StepStats(dev_stats=[DeviceStepStats(device="/cpu:0", node_stats=nodes)])
    names = Names()
    ((*_, data),), drawn, _ = lines_of(step, names)
    assert (drawn, names.described, len(XLine.FromString(data).events)) == (100, 1, 100)


def lines_of(step: StepStats, names: Names):
    return events_of(step).lines(
        0,
        describe=names.describe,
        stat_number=names.of,
        origin_ns=EPOCH_NS,
        shift_ns=0,
        by_thread=False,
        by_process=False,
        processes={},
        first_correlation=0,
        correlation_stat="correlation_id",
        causes=[],
        flows={},
        detail_stats=(),
        event_stats={},
        only=None,
    )


@pytest.mark.medium
def test_more_descriptions_than_are_remembered():
    nodes = [NodeExecStats(node_name=f"op{at % 70_000}", all_start_nanos=EPOCH_NS + at) for at in range(70_010)]
    names = Names()
    ((*_, data),), drawn, _ = lines_of(StepStats(dev_stats=[DeviceStepStats(node_stats=nodes)]), names)
    found = [event.metadata_id for event in XLine.FromString(data).events]
    assert drawn == 70_010
    assert found == [names.of((f"op{at % 70_000}", 0, 0, False)) for at in range(70_010)]


def test_an_error_of_a_description_is_raised():
    step = StepStats(dev_stats=[DeviceStepStats(node_stats=[NodeExecStats(node_name="op", all_start_nanos=EPOCH_NS)])])

    def fail(*_):
        raise RuntimeError("on purpose")

    names = Names()
    names.describe = fail
    with pytest.raises(RuntimeError, match="on purpose"):
        lines_of(step, names)


def test_a_device_that_is_not_there():
    with pytest.raises(IndexError):
        events_of(StepStats()).nodes(0)


def test_streams_have_the_activities_of_all_streams():
    rng = random.Random(1)
    step = random_step(rng)
    while len(step.dev_stats[1].node_stats) != len(step.dev_stats[2].node_stats):
        step = random_step(rng)
    assert {activity.kind for activity in known_activities(step, 2)} == {Activity.KERNEL}
