"""The views about ranks: the same collectives, told apart by the same details, as in `collector.analysis.ranks`."""

from __future__ import annotations

import pytest
from captures import CaptureBuilder

pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

from sql_engines import duckdb_view

from collector.analysis import ranks
from collector.dataset import Dataset, DatasetWriter
from collector.errors import CollectorError
from collector.merging.clocks import estimate_offsets, shared_collective_name
from collector.merging.stated_collectives import comparable, moments_of_step

NAME = "ncclDevKernel_AllReduce_Sum_f32"
COUNT = 20
"""Collectives of a rank that relate clocks which agree; of fewer, equal ends may be chance."""
FIGURES = ("ranks", "straggler", "skew_ns", "cost_ns", "transfer_ns")
DETAILS = {
    "collective": "collective",
    "group": "group_name",
    "seq": "sequence",
    "dtype": "type_name",
    "elements": "num_in_elements",
}
"""Detail of a collective in its name -> the view's column of it."""


def collective(build, start, end, name=NAME, ahead=0, correlation_id=1, **stated):
    """A kernel, and what is stated of it: ``collective``, ``group``, ``seq``, ``dtype``, ``elements``."""
    build.kernel(name, start + ahead, end - start, correlation_id=correlation_id)
    if stated:
        row = build.rows["kernels"][-1]
        build.raw(
            "collectives",
            **{column: row.get(column, 0) for column in ("start_ns", "stream_id", "context_id", "correlation_id")},
            name_id=build.text(stated.get("collective", "")),
            group_name_id=build.text(stated.get("group", "")),
            type_name_id=build.text(stated.get("dtype", "")),
            sequence=stated.get("seq", 0),
            num_in_elements=stated.get("elements", 0),
        )


def dataset_of(folder, builders, run="a"):
    for rank, build in enumerate(builders):
        with DatasetWriter(folder, run=run, rank=rank) as writer:
            writer.write(build.recording())
    return Dataset(folder)


def told(row):
    """The name that a row of the view has in the native answer."""
    details = {key: row[column] for key, column in DETAILS.items()} | {"grid": row["grid"], "block": row["block"]}
    return shared_collective_name(
        row["demangled_name"], {key: str(value) for key, value in details.items() if value not in (None, "")}
    )


def compared(dataset):
    """Pairing by step, name and ordinal of a collective, after those with figures were held equal to the native ones.

    The native answer takes the offsets of the clocks from the view, because the two estimate them differently.
    """
    rows = {(row["step"], told(row), row["ordinal"]): row for row in duckdb_view(dataset, "answer_ranks")}
    clocks = duckdb_view(dataset, "clocks")
    offsets = {row["rank"]: row["clock_offset_ns"] for row in clocks if row["clock"] != "none"}
    answer = ranks(dataset, by="collective", clock_offsets=offsets) if len(offsets) > 1 else ()
    native = {(row["step"], row["name"], row["ordinal"]): {name: row[name] for name in FIGURES} for row in answer}
    for key, row in rows.items():
        figures = {name: row[name] for name in FIGURES}
        if row["pairing"] == "by ordinal":
            assert figures == native.get(key), key
        else:
            assert (row["pairing"], set(figures.values())) == ("unknown", {row["ranks"], None})
    paired = {key[:2] for key, row in rows.items() if row["pairing"] == "by ordinal"}
    assert {key for key in native if key[:2] in paired} <= rows.keys()
    return {key: row["pairing"] for key, row in rows.items()}


def costs(dataset):
    """Group, ordinal, ranks, pairing, straggler and cost of each collective in the view."""
    names = ("group_name", "ordinal", "ranks", "pairing", "straggler", "cost_ns")
    found = [tuple(row[name] for name in names) for row in duckdb_view(dataset, "answer_ranks")]
    return sorted(found, key=lambda row: (row[0] or "", row[1]))


def groups_of_two(late_rank=3, ahead=(0, 0, 0, 0), **stated):
    """Four ranks that run collectives at the same times in the groups of ranks 0 and 1, and of 2 and 3."""
    builders = []
    for rank in range(4):
        build = CaptureBuilder()
        for number in range(COUNT):
            base = 10_000 * (number + 1) + 77 * number**2
            start = base + 400 * (rank == late_rank)
            end = base + (1000 if rank < 2 else 1300)
            own = {"group": f"dp{rank // 2}", "collective": "allreduce", **stated} if stated is not None else {}
            collective(build, start, end, ahead=ahead[rank], correlation_id=number + 1, **own)
        builders.append(build)
    return builders


@pytest.mark.medium
def test_groups_that_run_the_same_at_the_same_time_do_not_wait_for_each_other(tmp_path):
    dataset = dataset_of(tmp_path, groups_of_two(elements=64))
    expected = [("dp0", number, 2, "by ordinal", 0, 0) for number in range(COUNT)]
    expected += [("dp1", number, 2, "by ordinal", 3, 400) for number in range(COUNT)]
    assert costs(dataset) == expected
    assert set(compared(dataset).values()) == {"by ordinal"}


@pytest.mark.medium
def test_clocks_of_groups_are_compared_within_them(tmp_path):
    """No collective relates the clocks of two groups, so each group has a rank of reference of its own."""
    dataset = dataset_of(tmp_path, groups_of_two(ahead=(0, 7_000, 90_000, 50_000), elements=64))
    names = ("rank", "reference", "collectives", "clock_offset_ns", "clock")
    clocks = sorted(tuple(row[name] for name in names) for row in duckdb_view(dataset, "clocks"))
    assert clocks == [
        (0, 0, COUNT, 0, "reference"),
        (1, 0, COUNT, 7_000, "estimated"),
        (2, 2, COUNT, 0, "reference"),
        (3, 2, COUNT, -40_000, "estimated"),
    ]
    assert {(row[0], row[5]) for row in costs(dataset)} == {("dp0", 0), ("dp1", 400)}


def grid(ahead, pairs):
    """Ranks that run collectives in pairs, five in each."""
    builders = [CaptureBuilder() for _ in ahead]
    for place, pair in enumerate(pairs):
        for number in range(5):
            end = 100_000 * (number + 1) + 10_000 * place + 31 * number**2
            for rank in pair:
                start = end - 1000 - 100 * rank
                collective(
                    builders[rank], start, end, ahead=ahead[rank], correlation_id=9 * place + number, group=str(pair)
                )
    return builders


def states(dataset):
    """Rank -> the state of its clock in SQL, and in Python's estimate."""
    in_sql = {row["rank"]: row["clock"] for row in duckdb_view(dataset, "clocks")}
    moments = [moments_of_step(step, 0) for step in dataset]
    markers = dict(zip((key.rank for key in dataset.keys), comparable(moments)[0], strict=True))
    in_python = {rank: offset.source for rank, offset in estimate_offsets(markers).items()}
    return {rank: (state, in_python[rank]) for rank, state in in_sql.items()}


@pytest.mark.medium
@pytest.mark.parametrize(
    ("pauses", "scatter", "ahead", "state"),
    [
        ([10_000] * 6, 0, 0, "none"),  # equal ends of so few collectives at regular intervals may be chance
        ([10_000] * 20, 0, 0, "estimated"),
        ([10_000 + 777 * number**2 for number in range(20)], 900, 40, "estimated"),
        ([10_000 + 777 * number**2 for number in range(20)], 9_000, 0, "none"),
        ([10_000] * 6, 0, 7_000, "estimated"),
        ([10_000], 0, 0, "none"),
        ([10_000], 0, 300, "estimated"),
    ],
)
def test_a_clock_is_determined_where_python_determines_it(tmp_path, pauses, scatter, ahead, state):
    builders = [CaptureBuilder(), CaptureBuilder()]
    for rank, build in enumerate(builders):
        now = 0
        for number, pause in enumerate(pauses):
            now += pause
            away = rank * scatter * (number * 7919 % 201 - 100) // 100
            collective(build, now - 2_000 - scatter, now + away, ahead=rank * ahead, correlation_id=number)
    dataset = dataset_of(tmp_path, builders)
    assert states(dataset) == {0: ("reference", "reference"), 1: (state, state)}
    assert bool(duckdb_view(dataset, "answer_ranks")) == (state != "none")
    clocks = {row["rank"]: row for row in duckdb_view(dataset, "clocks")}
    assert (clocks[1]["clock_offset_ns"] is None) == (clocks[1]["reference"] is None) == (state == "none")


@pytest.mark.medium
@pytest.mark.parametrize("ahead", [0, 300, 100_000])
def test_clocks_of_collectives_with_sequence_numbers_are_determined(tmp_path, ahead):
    """Each name occurs once then; the time of the step tells how far ends would be apart by chance."""
    builders = [CaptureBuilder(), CaptureBuilder()]
    for rank, build in enumerate(builders):
        for number in range(20):
            now = 20_000 * (number + 1) + 31 * number**2 + rank * (number * 7919 % 400)
            stated = {"collective": "allreduce", "group": "g", "seq": number + 1}
            collective(build, now - 5_000, now, ahead=rank * ahead, correlation_id=number, **stated)
    dataset = dataset_of(tmp_path, builders)
    assert states(dataset) == {0: ("reference", "reference"), 1: ("estimated", "estimated")}


@pytest.mark.medium
@pytest.mark.parametrize("ahead", [0, 5_000, -5_000])
@pytest.mark.parametrize("count", [COUNT, COUNT + 1, COUNT + 2])
def test_clocks_are_those_of_python_where_all_ends_agree(tmp_path, count, ahead):
    builders = [CaptureBuilder(), CaptureBuilder()]
    for rank, build in enumerate(builders):
        for number in range(count):
            now = 20_000 * (number + 1) + 31 * number**2 + rank * (number * 7919 % 401)
            collective(build, now - 5_000, now, ahead=rank * ahead, correlation_id=number)
    dataset = dataset_of(tmp_path, builders)
    figures = ("rank", "clock_offset_ns", "clock_error_ns")
    found = [sorted(tuple(row[name] for name in figures) for row in rows) for rows in both_clocks(dataset)]
    assert found[0] == found[1]
    costs_of = [sorted((row["straggler"], row["cost_ns"]) for row in rows) for rows in both_ranks(dataset)]
    assert costs_of[0] == costs_of[1]


def both_clocks(dataset):
    """The clocks of ranks in SQL and in Python."""
    return duckdb_view(dataset, "clocks"), ranks(dataset)


def both_ranks(dataset):
    """The collectives in SQL and in Python."""
    return duckdb_view(dataset, "answer_ranks"), ranks(dataset, by="collective")


@pytest.mark.medium
def test_a_clock_is_compared_through_another_rank(tmp_path):
    """Rank 3 has no collective in common with rank 0, but both have some with rank 1."""
    dataset = dataset_of(tmp_path, grid((0, 7_000, -9_000, 30_000), [(0, 1), (0, 2), (1, 3), (2, 3)]))
    clocks = {row["rank"]: (row["reference"], row["clock_offset_ns"]) for row in duckdb_view(dataset, "clocks")}
    assert clocks == {0: (0, 0), 1: (0, 7_000), 2: (0, -9_000), 3: (0, 30_000)}
    assert set(compared(dataset).values()) == {"by ordinal"}


@pytest.mark.medium
def test_collectives_of_ranks_whose_clocks_have_no_common_reference_have_no_figures(tmp_path):
    """Rank 4 is three collectives away from rank 0."""
    dataset = dataset_of(tmp_path, grid((0, 0, 0, 0, 0), [(0, 1), (1, 2), (2, 3), (3, 4)]))
    found = {row[0]: row[3:] for row in costs(dataset)}
    assert found[str((2, 3))] == found[str((3, 4))] == ("unknown", None, None)
    assert found[str((0, 1))] == ("by ordinal", 0, 100)


@pytest.mark.medium
def test_details_that_a_rank_does_not_state_distinguish_no_collectives(tmp_path):
    builders = groups_of_two(elements=64)
    builders[3].rows["collectives"].clear()
    dataset = dataset_of(tmp_path, builders)
    assert {row[:3] for row in costs(dataset)} == {(None, number, 4) for number in range(COUNT)}
    compared(dataset)


@pytest.mark.medium
def test_details_distinguish_collectives_as_in_python(tmp_path):
    builders = []
    for rank in range(2):
        build = CaptureBuilder()
        for moment in ("wall_start_ns", "wall_stop_ns"):
            build.clock[moment] += 5_000 * rank
        shift = 30 * rank
        collective(build, 1000 + shift, 2000, correlation_id=0, collective="allreduce", group="a", elements=64)
        collective(build, 1001 + shift, 2001, correlation_id=2, collective="allreduce", group="a", elements=65)
        collective(build, 1002 + shift, 2002, correlation_id=3, collective="alltoallv", group="a", elements=rank + 1)
        way = ("send", "recv")[rank]
        collective(build, 5000 + shift, 6000, "ncclDevKernel_SendRecv", collective=way, group="a", seq=7 + rank)
        collective(build, 7000 + shift, 8000, correlation_id=5, collective="allreduce", seq=1, dtype="float")
        collective(build, 7001 + shift, 8001, correlation_id=6, collective="allreduce", seq=2, dtype="float")
        collective(build, 9000 + shift, 9900, "custom_kernel", correlation_id=7, collective="broadcast", group="a")
        collective(build, 11_000 + shift, 12_000, correlation_id=8)
        collective(build, 13_000 + shift, 14_000, "void ncclKernel<float>(int)", correlation_id=9)
        collective(build, 13_001 + shift, 14_001, "void ncclKernel<int>(int)", correlation_id=10)
        collective(build, 15_000 + shift, 16_000, "customAllReduce", correlation_id=11)
        build.kernel("gemm", 17_000 + shift, 1000, correlation_id=12)
        build.annotation("hook/all_gather", 0, 20_000, 5, 12)
        build.kernel("elementwise", 18_000, 1000, correlation_id=13)
        builders.append(build)
    builders[0].raw("collectives", **{**builders[0].rows["collectives"][0], "num_in_elements": 64})  # stated twice
    found = compared(dataset_of(tmp_path, builders))
    assert len(found) == 12
    assert set(found.values()) == {"by ordinal"}


@pytest.mark.medium
def test_ends_that_are_nearer_to_another_ordinal_pair_nothing(tmp_path):
    builders = [CaptureBuilder(), CaptureBuilder()]
    for ahead, times in enumerate(([(0, 20), (20, 110)], [(10, 109), (109, 900)])):
        for start, end in times:
            collective(builders[ahead], start, end, ahead=50_000 * ahead)
    assert {row[3] for row in costs(dataset_of(tmp_path, builders))} == {"unknown"}


@pytest.mark.medium
def test_every_run_has_clocks_and_collectives_of_its_own(tmp_path):
    dataset_of(tmp_path, groups_of_two(elements=64), run="a")
    for build in (others := groups_of_two(late_rank=0, elements=64)):
        build.rows["collectives"].clear()
    dataset = dataset_of(tmp_path, others, run="b")
    found = {(row["run"], row["group_name"], row["ranks"]) for row in duckdb_view(dataset, "answer_ranks")}
    assert found == {("a", "dp0", 2), ("a", "dp1", 2), ("b", None, 4)}


@pytest.mark.medium
def test_figures_are_those_of_python_for_any_groups(tmp_path_factory):
    hypothesis = pytest.importorskip("hypothesis")
    from properties import examples

    st = hypothesis.strategies
    groups = st.sampled_from([(0, 1, 2, 3), (0, 1), (2, 3), (0, 2), (1, 3), (1, 2, 3)])
    run = st.tuples(
        groups,
        st.sampled_from(["allreduce", "send", "alltoallv", ""]),
        st.integers(0, 2),  # sequence number
        st.lists(st.sampled_from([0, 0, 40, 900]), min_size=4, max_size=4),  # how late each rank is
        st.sampled_from([0, 500, 1_200, 5_000]),  # from the end of the one before
        st.sampled_from([None, None, None, 0, 3]),  # rank that did not record it
    )
    ahead = st.lists(st.sampled_from([0, 0, 300, 90_000]), min_size=4, max_size=4)

    @hypothesis.settings(max_examples=examples(30))
    @hypothesis.given(st.lists(run, min_size=1, max_size=12), ahead, st.sampled_from([None, None, 2]))
    def check(runs, ahead, unstated):
        builders = [CaptureBuilder() for _ in ahead]
        now = 0
        for number, (group, name, sequence, late, pause, missing) in enumerate(runs):
            now += pause + 1_000
            for rank in group:
                stated = {} if rank == unstated else {"group": str(group), "collective": name, "seq": sequence}
                if rank != missing:
                    start = now + late[rank]
                    collective(builders[rank], start, now + 1000, ahead=ahead[rank], correlation_id=number, **stated)
        dataset = dataset_of(tmp_path_factory.mktemp("runs"), builders)
        compared(dataset)
        references = {row["rank"]: row["reference"] for row in duckdb_view(dataset, "clocks")}
        for rank, (in_sql, in_python) in states(dataset).items():
            assert in_sql == "none" or references[rank] != dataset.keys[0].rank or in_python != "none", rank

    check()


def two_ranks(late, ahead=0, later=0):
    """Two ranks that run a collective for each pair of ``late``: how late each of them arrives."""
    builders = []
    for rank in range(2):
        build = CaptureBuilder()
        for key in ("cupti_start_ns", "cupti_stop_ns", "wall_start_ns", "wall_stop_ns"):
            build.clock[key] += later
        for number, lates in enumerate(late):
            end = 20_000 * (number + 1) + 77 * number**3 + max(lates) + 2_000
            collective(build, end - 2_000 - max(lates) + lates[rank], end, ahead=later + ahead * rank)
        builders.append(build)
    return builders


RUNS = {"a": ([(0, 40), (30, 0), (0, 90), (10, 0)] * 3, 0, 0), "b": ([(60, 0), (0, 5)] * 6, 50_000, 3_600_000_000_000)}
"""Two runs, in the second of which the clock of rank 1 is ahead."""


def dataset_of_runs(folder):
    for run, (late, ahead, later) in RUNS.items():
        dataset = dataset_of(folder, two_ranks(late, ahead, later), run)
    return dataset


@pytest.mark.medium
@pytest.mark.parametrize("by", ["rank", "collective"])
def test_each_run_of_a_dataset_is_answered_as_if_it_were_alone(tmp_path, by):
    dataset = dataset_of_runs(tmp_path)
    answer = ranks(dataset, by=by)
    alone = {run: ranks(Dataset(tmp_path, run=run), by=by) for run in RUNS}
    for run, own in alone.items():
        assert "run" not in own.values
        assert [{key: value for key, value in row.items() if key != "run"} for row in answer if row["run"] == run] == [
            *own
        ]
    assert answer.totals == {name: sum(own.totals[name] for own in alone.values()) for name in answer.totals}
    assert (answer.losses, answer.notes) == ((), alone["a"].notes)
    cost = answer["caused_ns" if by == "rank" else "cost_ns"].tolist()
    assert cost == sorted(cost, reverse=True)


@pytest.mark.medium
def test_several_runs_cost_in_python_as_much_as_in_sql(tmp_path):
    dataset = dataset_of_runs(tmp_path)
    answer = ranks(dataset, by="collective")
    found = {(row["run"], row["ordinal"], row["cost_ns"]) for row in duckdb_view(dataset, "answer_ranks")}
    assert found == {(row["run"], row["ordinal"], row["cost_ns"]) for row in answer}
    assert len(found) == 24


@pytest.mark.medium
def test_a_run_without_two_ranks_is_left_out(tmp_path):
    dataset_of_runs(tmp_path)
    dataset = dataset_of(tmp_path, [CaptureBuilder()], "alone")
    answer = ranks(dataset)
    assert set(answer["run"]) == {"a", "b"}
    assert answer.losses[-1].startswith(
        "run alone is left out: waits between ranks need the steps of at least two ranks: 1 was"
    )
    with pytest.raises(CollectorError, match="at least two ranks: 1 was given"):
        ranks(Dataset(tmp_path, run="alone"))
    with pytest.raises(CollectorError, match="run a: waits between ranks need the steps of at least two ranks: 1 was"):
        ranks(Dataset(tmp_path, rank=0))


@pytest.mark.medium
def test_losses_and_notes_name_their_run(tmp_path):
    builders = two_ranks(RUNS["a"][0])
    collective(builders[0], 900_000, 901_000)
    for build in builders:
        for row in build.rows["kernels"]:
            build.raw("collectives", **{key: row.get(key, 0) for key in ("start_ns", "stream_id", "context_id")},
                      correlation_id=row["correlation_id"], group_name_id=build.text("dp"))  # fmt: skip
    dataset_of_runs(tmp_path)
    answer = ranks(dataset_of(tmp_path, builders, "c"))
    assert answer.losses == ("run c: 1 collective is left out: no other rank has a partner of it",)
    assert [note.partition(" recognised by")[0].partition(" that the")[0] for note in answer.notes] == [
        "Run a: Collectives are",
        "Run b: Collectives are",
        "Run c: Collectives are those",
    ]
