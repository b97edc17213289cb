"""The views of a dataset, each defined once as an Ibis expression, from which the SQL of every dialect is compiled.

A definition keeps to what all engines agree on: no FILTER, QUALIFY, GROUP BY ALL, lists or structs, quantiles, division
of integers or unsigned sums; joins rename the keys of their right side; windows order totally, where the order of equal
rows matters; no NULL of an empty frame is left. ``answer_<question>`` has the figures of `collector.analysis`, a row
for each of its rows, with run, rank and step: those that the native code stored when the step was written.
``computed_<question>`` answers the same from the rows, for queries that change what is counted, and for tests that hold
the definitions equal.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from collector.analysis.device_times import EXPOSURE
from collector.analysis.questions import QUESTIONS
from collector.analysis.steps import FAR
from collector.dataset.dataset_folder import tables
from collector.dataset.dataset_tables import ENUMS
from collector.dataset.step_facts import FACTS
from collector.dataset.view_files import DIALECTS, view_texts
from collector.errors import CollectorError
from collector.merging.clocks import CHANCE, COLLECTIVE, ONE_WAY, PAIR, RESOLUTION_NS, SAME_LENGTH
from collector.recording.cupti_enums import DEGREE_WHOLE_GRAPH
from collector.recording.possible_sizes import LARGEST_BYTES
from collector.runtime.optional_packages import optional_package
from collector.text.wording import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_PLACE = ("run", "rank", "step")
_COMPUTED = "computed_"
_CLASSES = ("compute", "communication", "copy", "memset", "graph")


def base_table(name: str) -> Any:
    """A table of a dataset as an unbound table of Ibis."""
    ibis = optional_package("ibis")
    if name in ENUMS:
        return ibis.table({"id": "int32", "label": "string"}, name=name)
    table = tables()[name]
    types = {"int64": "int64", "int32": "int32", "string": "string", "bool": "boolean", "double": "float64"}
    places = {"run": "string", **({"rank": "int32"} if table.has_rank else {})}
    return ibis.table({**places, **{column.name: types[column.type] for column in table.columns}}, name=name)


def view_names() -> list[str]:
    """The names of all views."""
    return [
        *(f"answer_{question}" for question in QUESTIONS),
        *(f"{_COMPUTED}{question}" for question in _COMPUTED_QUESTIONS),
        *_OTHERS,
    ]


@cache  # a view is compiled for several dialects
def view_expression(view: str) -> Any:
    """The definition of a view as an expression of Ibis over the tables of a dataset.

    Raises:
        KeyError: there is no such view.
    """
    if view in _OTHERS:
        return _OTHERS[view]()
    if view.startswith(_COMPUTED):
        return _COMPUTED_QUESTIONS[view.removeprefix(_COMPUTED)]()
    question = view.removeprefix("answer_")
    if question in _NOT_STORED:
        return _NOT_STORED[question]()
    stored = {name: table for table, (name, _) in reversed(list(FACTS.items()))}
    return base_table(stored[question])


def view_text(view: str, dialect: str) -> str:
    """The query of a view: as it is kept, or compiled now for a dialect that is not kept.

    Raises:
        MissingDependencyError: Ibis is not installed.
        CollectorError: there is no such view, or Ibis cannot express it in the dialect.
    """
    if dialect not in DIALECTS:
        return compiled(view, dialect)
    texts = view_texts(dialect)
    _check_choice("view", view, list(texts))
    return texts[view]


def compiled(view: str, dialect: str) -> str:
    """The query of a view in any dialect that Ibis knows.

    Raises:
        MissingDependencyError: Ibis is not installed.
        CollectorError: there is no such view, or Ibis has no such dialect or cannot express the view in it.
    """
    ibis = optional_package("ibis")
    if ibis.options.pyspark is None:  # only Ibis's connection to a Spark sets what the texts of floats depend on
        ibis.options.pyspark = type("SparkOptions", (ibis.config.Config,), {"treat_nan_as_null": False})()
    _check_choice("view", view, view_names())
    names = {each.name: each.name for each in ibis.util.backend_entry_points()} | _IBIS_NAMES
    _check_choice("dialect", dialect, sorted(names))
    try:
        return f"{ibis.to_sql(view_expression(view), dialect=names[dialect])}\n"
    except Exception as error:  # Ibis raises errors of many kinds
        raise CollectorError(f"Ibis does not write {view} in the dialect {dialect!r}: {error}") from error


def _check_choice(what: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise CollectorError(
            f"there is no {what} {given!r}{suggestion(given, known)}", f"Choose one of {', '.join(known)}"
        )


_IBIS_NAMES = {"spark": "pyspark"}


# --- rows that several views begin with


def _activities() -> Any:
    """Kernels, copies, memsets and graphs that were recorded as a whole, with their times, streams and classes."""
    ibis = optional_package("ibis")
    common = [*_PLACE, "device_id", "context_id", "stream_id", "correlation_id", "start_ns", "duration_ns"]
    kernels, copies, memsets = (base_table(name) for name in ("kernels", "copies", "memsets"))
    graphs = base_table("graph_launches")
    graphs = graphs.filter(graphs.graph_degree == DEGREE_WHOLE_GRAPH)
    return ibis.union(
        kernels.select(*common, "class"),
        copies.select(*common, **{"class": ibis.literal("copy")}),
        memsets.select(*common, **{"class": ibis.literal("memset")}),
        graphs.select(*common, **{"class": ibis.literal("graph")}),
        distinct=False,
    ).mutate(end_ns=lambda rows: rows.start_ns + rows.duration_ns)


def _without(rows: Any, *columns: str) -> Any:
    """Rows without some columns; `drop` would name these in the order of their hashes."""
    return rows.select(*(name for name in rows.columns if name not in columns))


def _in_step(rows: Any) -> Any:
    """Rows cut to the window of their step; what lies outside is left out."""
    ibis = optional_package("ibis")
    steps = base_table("steps").select("run", "rank", "step", first_ns="start_ns", last_ns="end_ns")
    steps = steps.rename({f"of_{name}": name for name in _PLACE})
    joined = rows.inner_join(steps, [rows[name] == steps[f"of_{name}"] for name in _PLACE])
    cut = joined.mutate(
        start_ns=ibis.greatest(joined.start_ns, joined.first_ns), end_ns=ibis.least(joined.end_ns, joined.last_ns)
    )
    return cut.filter(cut.end_ns >= cut.start_ns)


def _edges() -> Any:
    """The moments at which activities of each class begin (1) and end (-1), by device."""
    ibis = optional_package("ibis")
    rows = _in_step(_activities())
    sides = []
    for time, change in (("start_ns", 1), ("end_ns", -1)):
        changes = {
            name: (rows["class"] == name).ifelse(ibis.literal(change, "int64"), ibis.literal(0, "int64"))
            for name in _CLASSES
        }
        sides.append(rows.select(*_PLACE, "device_id", at_ns=rows[time], **changes))
    return ibis.union(*sides, distinct=False)


def _spans() -> Any:
    """The spans between such moments, with the number of activities of each class that run in them.

    Of several edges at one moment only the last one has a length, so their order does not matter.
    They are kept, because activities without a duration may be all that a device has.
    """
    ibis = optional_package("ibis")
    places = [*_PLACE, "device_id"]
    edges = _edges()
    in_order = {"group_by": [edges[name] for name in places], "order_by": edges.at_ns}
    so_far = ibis.window(**in_order, preceding=None, following=0)
    spans = edges.select(
        *places,
        length_ns=edges.at_ns.lead().over(ibis.window(**in_order)).coalesce(edges.at_ns) - edges.at_ns,
        **{name: edges[name].sum().over(so_far) for name in _CLASSES},
    )
    running = sum((spans[name] for name in _CLASSES[1:]), spans[_CLASSES[0]])
    return spans.mutate(running=(spans.length_ns > 0).ifelse(running, ibis.literal(0, "int64")))


def _time_where(spans: Any, condition: Any) -> Any:
    ibis = optional_package("ibis")
    return condition.ifelse(spans.length_ns, ibis.literal(0, "int64")).sum()


def _exposed(spans: Any) -> dict[str, Any]:
    """The exposed times of the classes that others can hide, as `EXPOSURE` orders them."""
    before, *names = (each.name.lower() for each in EXPOSURE)
    hidden, found = spans[before] > 0, {}
    for name in names:
        found[f"exposed_{name}_ns"] = _time_where(spans, (spans[name] > 0) & ~hidden)
        hidden |= spans[name] > 0
    return found


def _times(rows: Any, keys: list[str], more: Callable[[Any], Mapping[str, Any]] = lambda rows: {}) -> Any:
    """Rows counted by keys, with sums, ends and the lower median of their durations, and further aggregates."""
    ibis = optional_package("ibis")
    ordered = {"group_by": [rows[key] for key in keys], "order_by": [rows.duration_ns, rows.id]}
    all_of_key = ibis.window(**ordered, preceding=None, following=None)  # in the order of the other, to sort once
    rows = rows.mutate(place=ibis.row_number().over(ibis.window(**ordered)), number=rows.count().over(all_of_key))
    return rows.group_by(keys).aggregate(
        count=rows.count(),
        **more(rows),
        total_ns=rows.duration_ns.sum(),
        min_ns=rows.duration_ns.min(),
        max_ns=rows.duration_ns.max(),
        median_ns=_is_lower_middle(rows).ifelse(rows.duration_ns, None).max(),
    )


def _is_lower_middle(rows: Any) -> Any:
    """Whether a row is the lower middle one, by its place among a number of rows in order."""
    return (rows.place * 2 == rows.number - 1) | (rows.place * 2 == rows.number - 2)


# --- answers


def _kernels() -> Any:
    return _times(base_table("kernels"), [*_PLACE, "name"])


def _calls() -> Any:
    ibis = optional_package("ibis")
    calls = base_table("api_calls")
    calls = calls.mutate(domain=(calls.domain == _RUNTIME).ifelse("runtime", "driver"))

    def errors(rows: Any) -> dict[str, Any]:
        return {"errors": (rows.return_value != 0).ifelse(ibis.literal(1, "int64"), ibis.literal(0, "int64")).sum()}

    return _times(calls, [*_PLACE, "api", "domain"], errors)


_RUNTIME = 2
"""``CUpti_CallbackDomain`` of the runtime API."""


def _copies() -> Any:
    ibis = optional_package("ibis")
    copies, memsets = base_table("copies"), base_table("memsets")
    kinds, memory = base_table("enum_copy_kind"), base_table("enum_memory_kind")

    def named(rows: Any, column: str, labels: Any, name: str) -> Any:
        """With the label of a kind, or its number if a newer CUPTI added it, as `collector.recording.kind_names`."""
        rows = _beside(rows, labels.select(**{column: labels.id, name: labels.label}), [column])
        number = ibis.literal("kind ") + rows[column].cast("string")
        return rows.mutate(**{name: rows[name].coalesce(number)})

    copies = named(
        named(named(copies, "copy_kind", kinds, "kind"), "src_kind", memory, "source"), "dst_kind", memory, "target"
    )
    memsets = named(memsets, "memory_kind", memory, "target")
    memsets = memsets.mutate(kind=ibis.literal("memset"), source=ibis.literal(""))
    columns = [*_PLACE, "device_id", "kind", "source", "target", "num_bytes", "duration_ns"]
    rows = ibis.union(copies.select(*columns), memsets.select(*columns), distinct=False)
    none = ibis.literal(0, "int64")
    known = rows.num_bytes.between(1, LARGEST_BYTES)  # sizes from 2^63 on are stored as negative numbers
    return rows.group_by(columns[:7]).aggregate(
        count=rows.count(),
        unknown_sizes=known.ifelse(none, ibis.literal(1, "int64")).sum(),
        num_bytes=known.ifelse(rows.num_bytes, none).sum(),
        total_ns=rows.duration_ns.sum(),
    )


def _launched() -> Any:
    """Each activity whose call was recorded, with the times of the outermost call that launched it."""
    calls = base_table("api_calls")
    calls = calls.filter(calls.is_outer).select(
        "api",
        api_id=calls.id,
        call_ns=calls.start_ns,
        api_ns=calls.duration_ns,
        of_correlation_id=calls.correlation_id,
        **{f"of_{name}": calls[name] for name in _PLACE},
    )
    rows = _activities()
    keys = [*_PLACE, "correlation_id"]
    joined = rows.inner_join(calls, [rows[key] == calls[f"of_{key}"] for key in keys])
    return _without(joined, *(f"of_{key}" for key in keys))


def _launch_delays() -> Any:
    ibis = optional_package("ibis")
    rows = _launched()
    since_return = rows.start_ns - rows.call_ns - rows.api_ns
    return rows.select(
        *_PLACE,
        "device_id",
        "stream_id",
        api_row=rows.api_id,
        api_ns=rows.api_ns,
        delay_ns=rows.start_ns - rows.call_ns,
        queue_ns=ibis.greatest(since_return, ibis.literal(0, "int64")),
    )


def _launches() -> Any:
    ibis = optional_package("ibis")
    rows = _launched()
    rows = rows.mutate(delay_ns=rows.start_ns - rows.call_ns, since_ns=rows.start_ns - rows.call_ns - rows.api_ns)
    calls = rows.group_by([*_PLACE, "api", "api_id"]).aggregate(
        activities=rows.count(),
        api_ns=rows.api_ns.max(),
        min_delay_ns=rows.delay_ns.min(),
        max_delay_ns=rows.delay_ns.max(),
        min_queue_ns=rows.since_ns.min(),
        max_queue_ns=rows.since_ns.max(),
    )
    return calls.group_by([*_PLACE, "api"]).aggregate(
        calls=calls.count(),
        activities=calls.activities.sum(),
        api_ns=calls.api_ns.sum(),
        min_delay_ns=calls.min_delay_ns.min(),
        max_delay_ns=calls.max_delay_ns.max(),
        min_queue_ns=calls.min_queue_ns.min(),
        max_queue_ns=ibis.greatest(calls.max_queue_ns.max(), ibis.literal(0, "int64")),
    )


def _devices() -> Any:
    spans = _spans()
    found = spans.group_by([*_PLACE, "device_id"]).aggregate(
        busy_ns=_time_where(spans, spans.running > 0),
        **{f"{name}_ns": _time_where(spans, spans[name] > 0) for name in _CLASSES},
        overlap_ns=_time_where(spans, (spans["compute"] > 0) & (spans["communication"] > 0)),
        **_exposed(spans),
        max_concurrency=spans.running.max(),
    )
    return _with_window(found)


def _with_window(found: Any) -> Any:
    """Rows with the length of the step, and the time of it that was not busy."""
    steps = base_table("steps").select("run", "rank", "step", window_ns=lambda rows: rows.end_ns - rows.start_ns)
    steps = steps.rename({f"of_{name}": name for name in _PLACE})
    joined = found.inner_join(steps, [found[name] == steps[f"of_{name}"] for name in _PLACE])
    kept = _without(joined, *(f"of_{name}" for name in _PLACE))
    return kept.mutate(idle_ns=kept.window_ns - kept.busy_ns)


def _overlap() -> Any:
    spans = _spans()
    compute, communication, copy, _, graph = (spans[name] > 0 for name in _CLASSES)
    return spans.group_by([*_PLACE, "device_id"]).aggregate(
        busy_ns=_time_where(spans, spans.running > 0),
        compute_ns=_time_where(spans, compute),
        **_exposed(spans),
        communication_ns=_time_where(spans, communication),
        copy_ns=_time_where(spans, copy),
        compute_communication_ns=_time_where(spans, compute & communication),
        compute_copy_ns=_time_where(spans, compute & copy),
        communication_copy_ns=_time_where(spans, communication & copy),
        graph_ns=_time_where(spans, graph),
    )


def _concurrency() -> Any:
    """The time of each number of activities that ran at once; that of none is what is left of the step."""
    ibis = optional_package("ibis")
    keys = [*_PLACE, "device_id", "running"]
    spans = _spans()
    spans = spans.filter(spans.running > 0).select(*keys, "length_ns")
    idle = _with_window(_busy())
    idle = idle.filter(idle.idle_ns > 0)
    idle = idle.mutate(running=ibis.literal(0, "int64"), length_ns=idle.idle_ns).select(*keys, "length_ns")
    whole = ibis.union(spans, idle, distinct=False)
    return whole.group_by(keys).aggregate(duration_ns=whole.length_ns.sum())


def _busy() -> Any:
    """Busy time by islands: what each activity adds to those that began before it."""
    ibis = optional_package("ibis")
    rows = _in_step(_activities())
    places = [*_PLACE, "device_id"]
    before = ibis.window(
        group_by=[rows[name] for name in places],
        order_by=rows.start_ns,  # the sum is the same in whatever order rows of one start come
        preceding=(None, 1),
    )
    rows = rows.mutate(covered_ns=rows.end_ns.max().over(before).coalesce(rows.start_ns))
    added = rows.end_ns - ibis.greatest(rows.start_ns, rows.covered_ns)
    return rows.group_by(places).aggregate(
        busy_ns=ibis.greatest(added, ibis.literal(0, "int64")).sum(), activities=rows.count()
    )


def _idle_gaps() -> Any:
    """The gaps of each device in its step, without their causes."""
    ibis = optional_package("ibis")
    rows = _in_step(_activities())
    places = [*_PLACE, "device_id"]
    steps = rows.group_by(places).aggregate(first_ns=rows.first_ns.min(), last_ns=rows.last_ns.min())
    edge = steps.select(*places, start_ns=steps.last_ns, end_ns=steps.last_ns, first_ns=steps.first_ns)
    whole = ibis.union(rows.select(*places, "start_ns", "end_ns", "first_ns"), edge, distinct=False)
    before = ibis.window(
        group_by=[whole[name] for name in places], order_by=[whole.start_ns, whole.end_ns], preceding=(None, 1)
    )
    gaps = whole.mutate(covered_ns=whole.end_ns.max().over(before).coalesce(whole.first_ns))
    gaps = gaps.filter(gaps.start_ns > gaps.covered_ns)
    return gaps.select(
        *places,
        start_ns=gaps.covered_ns - gaps.first_ns,
        end_ns=gaps.start_ns - gaps.first_ns,
        idle_ns=gaps.start_ns - gaps.covered_ns,
    )


def _queue() -> Any:
    """Depths of the queues of streams, from the calls' starts to the activities' starts."""
    ibis = optional_package("ibis")
    rows = _launched()
    rows = rows.filter(rows.call_ns <= rows.start_ns)  # the clocks may disagree
    places = [*_PLACE, "device_id", "context_id", "stream_id"]
    sides = [
        rows.select(*places, at_ns=rows[time], change=ibis.literal(change, "int64"))
        for time, change in (("call_ns", 1), ("start_ns", -1))
    ]
    edges = ibis.union(*sides, distinct=False)
    moments = edges.group_by([*places, "at_ns"]).aggregate(change=edges.change.sum())
    so_far = ibis.window(
        group_by=[moments[name] for name in places], order_by=moments.at_ns, preceding=None, following=0
    )
    depths = moments.mutate(depth=moments.change.sum().over(so_far))
    return depths.group_by(places).aggregate(
        window_ns=depths.at_ns.max() - depths.at_ns.min(), max_depth=depths.depth.max()
    )


def _annotation_times() -> Any:
    annotations = base_table("annotations")
    annotations = annotations.filter(annotations.is_in_step)
    return _times(annotations, [*_PLACE, "name"])


def _twice_the_median(rows: Any, keys: list[str], value: str) -> Any:
    """Twice the median of whole numbers by keys, as ``twice``: of an even number the sum of the two in the middle."""
    ibis = optional_package("ibis")
    by_keys = [rows[key] for key in keys]
    ordered = ibis.window(group_by=by_keys, order_by=[rows[value], rows.step, rows.number])
    ranked = rows.select(
        *keys,
        value=rows[value],
        place=ibis.row_number().over(ordered),
        count=rows.count().over(ibis.window(group_by=by_keys)),
    )
    middle = ranked.filter((ranked.place * 2 >= ranked["count"] - 2) & (ranked.place * 2 <= ranked["count"]))
    return middle.group_by(keys).aggregate(twice=middle["value"].min() + middle["value"].max())


def _beside(rows: Any, other: Any, keys: list[str]) -> Any:
    """Rows with the columns of others that have the same keys; those without are kept."""
    other = other.rename({f"of_{key}": key for key in keys})
    joined = rows.left_join(other, [rows[key] == other[f"of_{key}"] for key in keys])
    return _without(joined, *(f"of_{key}" for key in keys))


def _steps() -> Any:
    """The steps of each rank with the modified z-scores of their durations; the first, which warms up, stands apart.

    See `collector.analysis.steps.modified_z`. Where all other steps took equally long, the first one's is not known.
    """
    ibis = optional_package("ibis")
    keys = ["run", "rank"]
    rows = base_table("step_marks")
    in_order = ibis.window(group_by=[rows[key] for key in keys], order_by=[rows.step, rows.number])
    rows = rows.mutate(ordinal=ibis.row_number().over(in_order))
    rows = rows.mutate(is_apart=(rows.number == 0) & ((rows.ordinal == 0) | (rows.name != "")))
    usual = rows.filter(~rows.is_apart)
    counts = usual.group_by(keys).aggregate(usual_steps=usual.count())
    middles = _twice_the_median(usual, keys, "window_ns")
    away = _beside(usual, middles, keys)
    away = away.mutate(twice_away=(away.window_ns * 2 - away.twice).abs())
    means = away.group_by(keys).aggregate(mean_twice_away=away.twice_away.mean())
    deviations = _twice_the_median(away, keys, "twice_away").rename({"deviation": "twice"})
    for each in (counts, middles, means, deviations):
        rows = _beside(rows, each, keys)
    scale = (rows.deviation > 0).ifelse(rows.deviation / (4 * 0.6745), rows.mean_twice_away * (1.2533 / 2))
    distance = rows.window_ns * 2 - rows.twice
    is_known = (rows.usual_steps.coalesce(0) >= _FEWEST_STEPS) & (scale > 0)
    z = ibis.cases((distance == 0, ibis.literal(0.0)), (is_known, distance / (scale * 2)))
    rows = rows.mutate(z=(rows.usual_steps.coalesce(0) >= _FEWEST_STEPS).ifelse(z, None))
    verdict = ibis.cases(
        (rows.is_apart, "first"),
        (rows.usual_steps.coalesce(0) < _FEWEST_STEPS, ""),
        (rows.z.abs() > FAR, "outlier"),
        else_="usual",
    )
    return rows.select(*_PLACE, "number", "name", "window_ns", "busy_ns", "activities", "z", verdict=verdict)


_FEWEST_STEPS = 3
"""As in `collector.analysis.steps`."""


def _arrivals() -> Any:
    """The collectives of each rank, numbered by step, name and the details that distinguish them, as in the answer.

    Kernels are collectives by their name or op, see `collector.merging.clocks.COLLECTIVE`, or because their step states
    them. What is stated of them counts if no rank of the run has collectives without any that is stated. ``most``: the
    largest number of such collectives that a rank has; ``as_many``: all ranks that have it have as many of it.
    """
    ibis = optional_package("ibis")
    kernels = base_table("kernels")
    is_named = kernels.demangled_name.lower().re_search(COLLECTIVE.pattern)
    kernels = kernels.mutate(
        is_named=(is_named | kernels["op"].lower().re_search(COLLECTIVE.pattern)).coalesce(ibis.literal(value=False)),
        **{
            shape: ibis.literal(",").join([kernels[f"{shape}_{axis}"].cast("string") for axis in "xyz"])
            for shape in ("grid", "block")
        },
        of_correlation_id=kernels.correlation_id.coalesce(ibis.literal(0, "int64")),
    )
    kernels = _beside(kernels, _stated_collectives(), _OF_KERNEL)
    kernels = kernels.mutate(is_stated=kernels.is_stated.coalesce(ibis.literal(0, "int64")))
    kernels = kernels.filter(kernels.is_named | (kernels.is_stated > 0))
    kernels = kernels.mutate(step_states=kernels.is_stated.max().over(_among(kernels, list(_PLACE))))
    kernels = kernels.mutate(run_states=kernels.step_states.min().over(_among(kernels, ["run"])) > 0)
    kernels = kernels.filter(kernels.is_named | kernels.run_states)
    kernels = kernels.mutate(**{name: kernels.run_states.ifelse(kernels[name], None) for name in _STATED})
    of_rank = [kernels[name] for name in (*_COLLECTIVE_KEY, "rank")]
    rows = kernels.select(
        *_COLLECTIVE_KEY,
        "rank",
        "start_ns",
        "duration_ns",
        end_ns=kernels.start_ns + kernels.duration_ns,
        ordinal=ibis.row_number().over(ibis.window(group_by=of_rank, order_by=[kernels.start_ns, kernels.id])),
    )
    rows = rows.mutate(number=rows.ordinal.count().over(_among(rows, [*_COLLECTIVE_KEY, "rank"])))
    of_key = _among(rows, _COLLECTIVE_KEY)
    most = rows.number.max().over(of_key)
    return _without(rows.mutate(most=most, as_many=rows.number.min().over(of_key) == most), "number")


def _stated_collectives() -> Any:
    """The stated details of the collective of each kernel, the last of several; see `shared_collective_name`."""
    ibis = optional_package("ibis")
    rows = base_table("collectives")
    rows = rows.mutate(of_correlation_id=rows.correlation_id.coalesce(ibis.literal(0, "int64")))
    latest = ibis.window(group_by=[rows[name] for name in _OF_KERNEL], order_by=rows.id.desc())
    rows = rows.mutate(place=ibis.row_number().over(latest))
    rows = rows.filter(rows.place == 0)
    is_one_way = rows.name.isin(sorted(ONE_WAY))
    has_length = rows.name.lower().re_search(SAME_LENGTH.pattern)
    return rows.select(
        *_OF_KERNEL,
        is_stated=ibis.literal(1, "int64"),
        collective=is_one_way.ifelse(PAIR, rows.name.nullif("")),
        group_name=rows.group_name.nullif(""),
        sequence=is_one_way.ifelse(None, rows.sequence.nullif(0)),
        type_name=rows.type_name.nullif(""),
        num_in_elements=has_length.ifelse(rows.num_in_elements.nullif(0), None),
    )


_OF_KERNEL = [*_PLACE, "device_id", "context_id", "stream_id", "start_ns", "of_correlation_id"]
"""The columns that a stated collective and its kernel have in common."""
_STATED = ("collective", "group_name", "sequence", "type_name", "num_in_elements")
"""Details of a collective that are equal on all its ranks; NULL: the step does not state them."""
_COLLECTIVE_KEY = ["run", "step", "name", "demangled_name", "grid", "block", *_STATED]
_COLLECTIVE = [*_COLLECTIVE_KEY, "ordinal"]


def _among(rows: Any, keys: list[str]) -> Any:
    """All rows with the same keys as a row, as a window.

    Clocks and ranks are answered by windows over one scan: each join of a table with itself doubles the plan of Spark,
    which expands the text of a view wherever its rows are used.
    """
    return optional_package("ibis").window(group_by=[rows[key] for key in keys])


def _with_median(rows: Any, keys: list[str], value: str, name: str) -> Any:
    """Rows with the median of a column among the rows with the same keys, as `collector.merging.clocks` computes it."""
    ibis = optional_package("ibis")
    ordered = ibis.window(group_by=[rows[key] for key in keys], order_by=[rows[value], *(rows[key] for key in _OF_ONE)])
    placed = rows.mutate(place=ibis.row_number().over(ordered), number=rows.count().over(_among(rows, keys)))
    is_middle = (placed.place * 2 >= placed.number - 2) & (placed.place * 2 <= placed.number)
    return _without(_with_mean_of_two(placed, keys, is_middle.ifelse(placed[value], None), name), "place", "number")


def _with_mean_of_two(rows: Any, keys: list[str], value: Any, name: str) -> Any:
    """Rows with the mean, rounded down, of the one or two numbers that are not NULL among rows with the same keys."""
    found = rows.mutate(middle=value)
    ends = found.middle.min().over(_among(found, keys)), found.middle.max().over(_among(found, keys))
    found = found.mutate(least=ends[0], most_of_two=ends[1])
    half = ((found.most_of_two - found.least).cast("float64") / 2.0).floor().cast("int64")
    return _without(found.mutate(**{name: found.least + half}), "middle", "least", "most_of_two")


_OF_ONE = (*_COLLECTIVE_KEY[1:], "ordinal")
"""The columns that order the collectives of one rank."""


def _clocks() -> Any:
    """The offset of each rank's clock from that of the rank ``reference``, by the ends of their collectives.

    A collective ends on all ranks at nearly the same time. The offset is the median of the differences from the
    lowest rank with which a rank ran collectives; that rank's own offset is added. The offsets of ranks with the same
    ``reference`` are known to each other. Of collectives that some ranks have more of, ordinals do not tell the pairs,
    so they do not count.

    An offset counts where `collector.merging.clocks.estimate_offsets` determines it as well: the differences of some
    pairs are closer together than by chance, or the offset is larger than the differences are apart and puts at most
    half of the pairs in an impossible order. Of any other rank the clock is ``none``, and nothing is known.
    """
    ibis = optional_package("ibis")
    keys = ["run", "rank"]
    every_arrival = _arrivals()
    # Both would be more if the ends of all pairs were compared, as in Python: then an offset would count less often.
    every_arrival = every_arrival.mutate(
        of_rank=every_arrival.count().over(_among(every_arrival, keys)),
        differences=every_arrival.most.sum().over(_among(every_arrival, keys)),
        has_all_pairs=every_arrival.as_many.cast("int64").min().over(_among(every_arrival, keys)),
    )
    of_collective = _among(every_arrival, _COLLECTIVE)
    every_arrival = every_arrival.mutate(
        first_rank=every_arrival["rank"].min().over(of_collective), ranks=every_arrival.count().over(of_collective)
    )
    arrivals = every_arrival.filter(every_arrival.as_many & (every_arrival.ranks > 1))
    # The rank of reference is the first one of each collective that it has in common with a rank.
    is_first = arrivals["rank"] == arrivals.first_rank
    of_collective = _among(arrivals, _COLLECTIVE)
    arrivals = arrivals.mutate(
        compared_with=arrivals.first_rank.min().over(_among(arrivals, keys)),
        first_start_ns=is_first.ifelse(arrivals.start_ns, None).max().over(of_collective),
        first_end_ns=is_first.ifelse(arrivals.end_ns, None).max().over(of_collective),
    )
    arrivals = arrivals.mutate(apart_ns=arrivals.end_ns - arrivals.first_end_ns)
    pairs = arrivals.filter(arrivals.first_rank == arrivals.compared_with)
    pairs = _with_median(pairs, keys, "apart_ns", "median_ns")
    pairs = pairs.mutate(away_ns=(pairs.apart_ns - pairs.median_ns).abs())
    pairs = _with_median(pairs, keys, "away_ns", "error_ns")
    pairs = _with_chance(pairs, keys)
    starts_late = pairs.first_end_ns < pairs.start_ns - pairs.median_ns
    ends_early = pairs.end_ns - pairs.median_ns < pairs.first_start_ns
    found = pairs.group_by([*keys, "compared_with", "median_ns", "error_ns", "has_all_pairs"]).aggregate(
        collectives=pairs.count(),
        most_ns=pairs.away_ns.max(),
        out_of_order=(starts_late | ends_early).cast("int64").sum(),
        dense_error_ns=pairs.dense_error_ns.max(),
    )
    every_rank = every_arrival.select(*keys).distinct()
    every_rank = every_rank.mutate(lowest=every_rank["rank"].min().over(_among(every_rank, ["run"])))
    found = _beside(every_rank, found, keys)
    compared_with = found.compared_with.coalesce(found["rank"])
    is_reference = (found["rank"] == found.lowest) | (
        (found.collectives > 0) & (compared_with == found["rank"])
    ).coalesce(ibis.literal(value=False))
    is_counted = (
        (found.has_all_pairs > 0)
        & (found.median_ns.abs() > found.most_ns)
        & (found.out_of_order * 2 <= found.collectives)
    )
    none = ibis.literal(0, "int64")
    found = found.select(
        *keys,
        collectives=found.collectives.coalesce(none),
        compared_with=compared_with,
        offset_ns=is_reference.ifelse(none, found.median_ns),
        error_ns=is_reference.ifelse(none, found.dense_error_ns.coalesce(found.error_ns)),
        is_reference=is_reference,
        is_known=is_reference | (found.dense_error_ns.notnull() | is_counted).coalesce(ibis.literal(value=False)),
    )
    other = found.select(**{f"other_{name}": found[name] for name in found.columns})
    found = found.inner_join(other, [found.run == other.other_run, found.compared_with == other.other_rank])
    is_known = found.is_known & found.other_is_known
    return found.select(
        *keys,
        "collectives",
        reference=is_known.ifelse(found.other_compared_with, None),
        clock_offset_ns=is_known.ifelse(found.offset_ns + found.other_offset_ns, None),
        clock_error_ns=is_known.ifelse(found.error_ns + found.other_error_ns, None),
        clock=found.is_reference.ifelse("reference", is_known.ifelse("estimated", "none")),
    )


def _with_chance(pairs: Any, keys: list[str]) -> Any:
    """Pairs with ``dense_error_ns``: half of those that are closer together than by chance are within it of the median.

    It is NULL where none are so close together. The test is that of `collector.merging.clocks`, for intervals around
    the median, which are not shorter than the shortest ones there, and with one sixteenth of the pairs less, because
    not every number of pairs is tried there.
    """
    ibis = optional_package("ibis")
    in_order = {
        "group_by": [pairs[key] for key in keys],
        "order_by": [pairs.away_ns, *(pairs[key] for key in _OF_ONE)],
    }
    so_far = ibis.window(**in_order, preceding=None, following=0)
    of_key = _among(pairs, [*_COLLECTIVE_KEY, "rank"])
    of_step = _among(pairs, [*keys, "step"])
    pairs = pairs.mutate(
        nearest=ibis.row_number().over(ibis.window(**in_order)) + 1,
        width_ns=pairs.apart_ns.max().over(so_far) - pairs.apart_ns.min().over(so_far),
        range_ns=pairs.end_ns.max().over(of_key)
        - pairs.end_ns.min().over(of_key)
        + pairs.first_end_ns.max().over(of_key)
        - pairs.first_end_ns.min().over(of_key),
        elapsed_ns=ibis.greatest(
            pairs.end_ns.max().over(of_step) - pairs.end_ns.min().over(of_step),
            pairs.first_end_ns.max().over(of_step) - pairs.first_end_ns.min().over(of_step),
        ),
    )
    range_ns = ibis.greatest(
        pairs.range_ns.max().over(_among(pairs, keys)),
        pairs.elapsed_ns.max().over(_among(pairs, keys)),
        ibis.literal(RESOLUTION_NS, "int64"),
    )
    count = ((pairs.nearest + 1) * 15 // 16).cast("float64")
    width_ns = ibis.greatest(pairs.width_ns, ibis.literal(RESOLUTION_NS, "int64")).cast("float64")
    expected = width_ns * 2.0 * pairs.differences.cast("float64") / range_ns.cast("float64")
    of_rank = pairs.of_rank.cast("float64")
    # The maximum number of sizes tried: all below 16, and above that each is a sixteenth less than the one before.
    tried = ibis.least(of_rank, 16.0 + 16.0 * ibis.greatest(of_rank / 16.0, ibis.literal(1.0, "float64")).ln())
    least = (pairs.differences.cast("float64") * tried / CHANCE).ln()
    likelihood = count * (count / expected).ln() - (count - expected)
    is_dense = (pairs.nearest > 1) & (count > expected) & (likelihood > least)
    pairs = pairs.mutate(likelihood=is_dense.ifelse(likelihood, None))
    pairs = pairs.mutate(greatest=pairs.likelihood.max().over(_among(pairs, keys)))
    is_best = pairs.likelihood == pairs.greatest
    pairs = pairs.mutate(best=is_best.ifelse(pairs.nearest, None).max().over(_among(pairs, keys)))
    is_middle = (pairs.nearest * 2 >= pairs.best) & (pairs.nearest * 2 <= pairs.best + 2)
    return _with_mean_of_two(pairs, keys, is_middle.ifelse(pairs.away_ns, None), "dense_error_ns")


def _ranks() -> Any:
    """Each collective of all ranks, by its key and ordinal: who arrived last, and what that cost the others.

    Times are put right by the offsets of the view ``clocks``; waits within the errors of two clocks are none. The
    native answer pairs collectives whose ends are nearest to each other, because ranks may have recorded different
    ones. Ordinals tell the same only if all ranks have as many, if those with one ordinal ran at once on all ranks (a
    collective ends after its last rank has begun), and if their ends are nearer to each other than to those of the
    ordinals beside them. Of others, and of those whose ranks have clocks without a common reference, nothing but the
    number of ranks is known. Ranks whose clock is not known are left out.
    """
    ibis = optional_package("ibis")
    clocks = _clocks()
    clocks = clocks.filter(clocks.clock != "none")
    clocks = clocks.select("reference", "clock_offset_ns", "clock_error_ns", of_run="run", of_rank="rank")
    rows = _arrivals()
    rows = rows.inner_join(clocks, [rows.run == clocks.of_run, rows["rank"] == clocks.of_rank])
    rows = rows.select(
        *_COLLECTIVE,
        "rank",
        "duration_ns",
        "as_many",
        "reference",
        start_ns=rows.start_ns - rows.clock_offset_ns,
        end_ns=rows.end_ns - rows.clock_offset_ns,
        error_ns=rows.clock_error_ns,
    )
    of_collective = _among(rows, _COLLECTIVE)
    rows = rows.mutate(
        ranks=rows["rank"].count().over(of_collective),
        first_ns=rows.start_ns.min().over(of_collective),
        last_ns=rows.start_ns.max().over(of_collective),
        first_end_ns=rows.end_ns.min().over(of_collective),
        last_end_ns=rows.end_ns.max().over(of_collective),
        transfer_ns=rows.duration_ns.min().over(of_collective),
        is_comparable=rows.reference.min().over(of_collective) == rows.reference.max().over(of_collective),
    )
    rows = rows.mutate(spread_ns=rows.last_end_ns - rows.first_end_ns)
    on_rank = ibis.window(group_by=[rows[name] for name in (*_COLLECTIVE_KEY, "rank")], order_by=rows.ordinal)
    # How much further apart the ends of two ordinals are than those of one of them; NULL after the last ordinal.
    room_ns = rows.first_end_ns.lead().over(on_rank) - rows.last_end_ns
    rows = rows.mutate(
        together_ns=rows.first_end_ns - rows.last_ns,
        room_ns=room_ns - ibis.greatest(rows.spread_ns, rows.spread_ns.lead().over(on_rank)),
    )
    of_key = _among(rows, _COLLECTIVE_KEY)
    rows = rows.mutate(
        is_paired=rows.as_many
        & rows.is_comparable
        & (rows.together_ns.min().over(of_key) >= 0)
        & (rows.room_ns.min().over(of_key).coalesce(ibis.literal(1, "int64")) > 0)
    )
    rows = rows.filter(rows.ranks > 1)
    is_last = rows.start_ns == rows.last_ns
    rows = rows.mutate(straggler=is_last.ifelse(rows["rank"], None).min().over(_among(rows, _COLLECTIVE)))
    is_straggler = rows["rank"] == rows.straggler
    straggler_error_ns = is_straggler.ifelse(rows.error_ns, None).max().over(_among(rows, _COLLECTIVE))
    rows = rows.mutate(wait_ns=rows.last_ns - rows.start_ns, errors_ns=rows.error_ns + straggler_error_ns)
    counted = (rows.wait_ns > rows.errors_ns).ifelse(rows.wait_ns, ibis.literal(0, "int64"))
    rows = rows.group_by(
        [*_COLLECTIVE, "straggler", "ranks", "first_ns", "last_ns", "transfer_ns", "is_paired"]
    ).aggregate(cost_ns=counted.sum())
    figures = {
        "straggler": rows.straggler,
        "cost_ns": rows.cost_ns,
        "transfer_ns": rows.transfer_ns,
        "skew_ns": rows.last_ns - rows.first_ns,
    }
    return rows.select(
        *_COLLECTIVE,
        "ranks",
        pairing=rows.is_paired.ifelse("by ordinal", "unknown"),
        **{name: rows.is_paired.ifelse(figure, None) for name, figure in figures.items()},
    )


_COMPUTED_QUESTIONS: Mapping[str, Callable[[], Any]] = {
    "devices": _devices,
    "concurrency": _concurrency,
    "overlap": _overlap,
    "idle_gaps": _idle_gaps,
    "kernels": _kernels,
    "copies": _copies,
    "launches": _launches,
    "queue": _queue,
    "calls": _calls,
    "annotation_times": _annotation_times,
}
"""Question whose answer is stored -> the view that answers it from rows."""
_NOT_STORED: Mapping[str, Callable[[], Any]] = {
    "launch_delays": _launch_delays,
    "steps": _steps,
    "ranks": _ranks,
}
"""Question -> its view, for those about each launch, and about several steps and ranks; others are stored facts."""


# --- the tables of nsys's databases, with the columns that its reports and known queries use


def _strings() -> Any:
    """Every text that the views under nsys's names refer to, with a number."""
    ibis = optional_package("ibis")
    texts = [
        base_table(table).select(value=column)
        for table, column in (
            ("kernels", "name"),
            ("kernels", "demangled_name"),
            ("api_calls", "name"),
            ("annotations", "path"),
        )
    ]
    values = ibis.union(*texts, distinct=True)
    return values.select(id=ibis.row_number().over(order_by=values.value), value=values.value)


def _numbered(rows: Any, **texts: str) -> Any:
    """Rows with the numbers of their texts under other names."""
    for number, text in texts.items():
        strings = _strings()
        strings = strings.select(**{number: strings.id, f"of_{number}": strings.value})
        rows = _without(rows.inner_join(strings, rows[text] == strings[f"of_{number}"]), f"of_{number}")
    return rows


def _of_activity(rows: Any, **more: Any) -> Any:
    """The common columns of nsys's tables of GPU work."""
    return rows.select(
        *_PLACE,
        start=rows.start_ns,
        end=rows.start_ns + rows.duration_ns,
        deviceId=rows.device_id,
        contextId=rows.context_id,
        streamId=rows.stream_id,
        correlationId=rows.correlation_id,
        globalPid=rows.process_id * _GLOBAL_PID,
        graphNodeId=rows.graph_node_id,
        **more,
    )


_GLOBAL_PID = 1 << 24
"""nsys keeps a process number in the bits from here on, and a thread number below."""


def _nsys_kernels() -> Any:
    rows = _numbered(base_table("kernels"), shortName="name", demangledName="demangled_name")
    return _of_activity(
        rows,
        shortName=rows.shortName,
        demangledName=rows.demangledName,
        gridX=rows.grid_x,
        gridY=rows.grid_y,
        gridZ=rows.grid_z,
        blockX=rows.block_x,
        blockY=rows.block_y,
        blockZ=rows.block_z,
        registersPerThread=rows.registers_per_thread,
        staticSharedMemory=rows.static_shared_bytes,
        dynamicSharedMemory=rows.dynamic_shared_bytes,
        localMemoryPerThread=rows.local_bytes_per_thread,
        launchType=rows.launch_type,
        graphId=rows.graph_id,
    )


def _nsys_copies() -> Any:
    rows = base_table("copies")
    return _of_activity(
        rows, bytes=rows.num_bytes, copyKind=rows.copy_kind, srcKind=rows.src_kind, dstKind=rows.dst_kind
    )


def _nsys_memsets() -> Any:
    rows = base_table("memsets")
    return _of_activity(rows, bytes=rows.num_bytes, value=rows.value, memKind=rows.memory_kind)


def _nsys_calls() -> Any:
    rows = _numbered(base_table("api_calls"), nameId="name")
    return rows.select(
        *_PLACE,
        start=rows.start_ns,
        end=rows.start_ns + rows.duration_ns,
        globalTid=rows.process_id * _GLOBAL_PID + rows.thread_id,
        correlationId=rows.correlation_id,
        nameId=rows.nameId,
        returnValue=rows.return_value,
        eventClass=(rows.domain == _RUNTIME).ifelse(0, 1),
    )


def _nsys_waits() -> Any:
    rows = base_table("syncs")
    return rows.select(
        *_PLACE,
        start=rows.start_ns,
        end=rows.start_ns + rows.duration_ns,
        contextId=rows.context_id,
        streamId=rows.stream_id,
        correlationId=rows.correlation_id,
        syncType=rows.sync_kind,
        eventId=rows.event_id,
        eventSyncId=rows.event_sync_id,
    )


def _nsys_annotations() -> Any:
    ibis = optional_package("ibis")
    rows = _numbered(base_table("annotations"), textId="path")
    # Annotations have no process. It is that of the calls of their thread, or else of their step.
    calls = base_table("api_calls")
    for name, keys in (("process_of_thread", [*_PLACE, "thread_id"]), ("process_of_step", [*_PLACE])):
        rows = _beside(rows, calls.group_by(keys).aggregate(**{name: calls.process_id.max()}), keys)
    process_id = ibis.coalesce(rows.process_of_thread, rows.process_of_step, 0)
    return rows.select(
        *_PLACE,
        start=rows.start_ns,
        end=rows.start_ns + rows.duration_ns,
        text=rows.path,
        textId=rows.textId,
        globalTid=process_id * _GLOBAL_PID + rows.thread_id,
    )


def _nsys_devices() -> Any:
    rows = base_table("devices")
    return rows.select(
        *_PLACE,
        id=rows.device_id,
        name=rows.name,
        totalMemory=rows.memory_bytes,
        memoryBandwidth=rows.memory_bandwidth_bytes_per_s,
        clockRate=rows.clock_hz,
        smCount=rows.sm_count,
        computeMajor=rows.cc_major,
        computeMinor=rows.cc_minor,
        maxWarpsPerSm=rows.max_warps_per_sm,
        maxBlocksPerSm=rows.max_blocks_per_sm,
    )


def _nsys_memory() -> Any:
    rows = base_table("memory_ops")
    return rows.select(
        *_PLACE,
        start=rows.start_ns,
        globalPid=rows.process_id * _GLOBAL_PID,
        deviceId=rows.device_id,
        contextId=rows.context_id,
        streamId=rows.stream_id,
        correlationId=rows.correlation_id,
        memoryOperationType=rows.operation,
        memKind=rows.memory_kind,
        address=rows.address,
        bytes=rows.num_bytes,
    )


def _nsys_enum(table: str) -> Any:
    labels = base_table(table)
    return labels.select("id", "label", name=labels.label)


_NSYS_ENUMS = {
    "ENUM_CUDA_MEMCPY_OPER": "enum_copy_kind",
    "ENUM_CUDA_MEM_KIND": "enum_memory_kind",
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": "enum_launch_type",
    "ENUM_CUPTI_SYNC_TYPE": "enum_sync_kind",
    "ENUM_CUDA_DEV_MEM_EVENT_OPER": "enum_memory_operation",
}
"""nsys's table of an enumeration -> ours."""

_OTHERS: Mapping[str, Callable[[], Any]] = {
    "busy": _busy,
    "clocks": _clocks,
    "CUPTI_ACTIVITY_KIND_MEMORY2": _nsys_memory,
    **{name: partial(_nsys_enum, table) for name, table in _NSYS_ENUMS.items()},
    "CUPTI_ACTIVITY_KIND_KERNEL": _nsys_kernels,
    "CUPTI_ACTIVITY_KIND_MEMCPY": _nsys_copies,
    "CUPTI_ACTIVITY_KIND_MEMSET": _nsys_memsets,
    "CUPTI_ACTIVITY_KIND_RUNTIME": _nsys_calls,
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": _nsys_waits,
    "NVTX_EVENTS": _nsys_annotations,
    "TARGET_INFO_GPU": _nsys_devices,
    "StringIds": _strings,
}
"""Further views."""
