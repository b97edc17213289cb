"""Attributes for counting, display, sorting and filtering: one table each, in tfprof's print order."""

from __future__ import annotations

from dataclasses import dataclass

COUNTERS = (
    "exec_micros",
    "accelerator_exec_micros",
    "cpu_exec_micros",
    "requested_bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
    "parameters",
    "float_ops",
)
"""The figures of every node: its own and, prefixed with ``total_``, the sums."""


@dataclass(frozen=True)
class Attribute:
    """An attribute for ``-select``."""

    name: str
    """The word after ``-select``."""

    docs: tuple[str, ...]
    """Lines of the ``Doc:`` block."""


_TOTAL_TIME = "total execution time: Sum of accelerator execution time and cpu execution time."
_CPU_TIME = (
    "cpu execution time: The time from the start to the end of the operation. It's the sum of actual cpu run time plus "
    "the time that it spends waiting if part of computation is launched asynchronously."
)
_ACCELERATOR_TIME = (
    "accelerator execution time: Time spent executing on the accelerator. This is normally measured by the actual "
    "hardware library."
)

ATTRIBUTES: dict[str, Attribute] = {
    attribute.name: attribute
    for attribute in (
        Attribute("accelerator_micros", (_ACCELERATOR_TIME,)),
        Attribute("bytes", ("requested bytes: The memory requested by the operation, accumulatively.",)),
        Attribute("cpu_micros", (_CPU_TIME,)),
        Attribute("device", ("device: which device is placed on.",)),
        Attribute(
            "float_ops",
            ("flops: Number of float operations. Note: Please read the implementation for the math behind it.",),
        ),
        Attribute("input_shapes", ("input shape: The shape of input tensors",)),
        Attribute("micros", (_TOTAL_TIME, _CPU_TIME, _ACCELERATOR_TIME)),
        Attribute("occurrence", ("occurrence: The number of times it occurs",)),
        Attribute(
            "op_types",
            (
                "op_types: The attributes of the operation, includes the Kernel name device placed on and user-defined "
                "strings.",
            ),
        ),
        Attribute(
            "output_bytes",
            (
                "output bytes: The memory that is output from the operation (not necessarily allocated by the "
                "operation)",
            ),
        ),
        Attribute("params", ("param: Number of parameters (in the Variable).",)),
        Attribute(
            "peak_bytes", ("peak bytes: The peak amount of memory that the operation is holding at some point.",)
        ),
        Attribute("residual_bytes", ("residual bytes: The memory not de-allocated after the operation finishes.",)),
        Attribute("tensor_value", ("tensor_value: Not supported now.",)),
    )
}
"""Attribute name -> attribute, in the alphabetical order of the ``Doc:`` block."""

SIZE_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("bytes", "requested_bytes", "requested bytes"),
    ("peak_bytes", "peak_bytes", "peak bytes"),
    ("residual_bytes", "residual_bytes", "residual bytes"),
    ("output_bytes", "output_bytes", "output bytes"),
)
"""(attribute, counter, title) of the memory columns."""

TIME_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("micros", "exec_micros", "total execution time"),
    ("accelerator_micros", "accelerator_exec_micros", "accelerator execution time"),
    ("cpu_micros", "cpu_exec_micros", "cpu execution time"),
)
"""(attribute, counter, title) of the time columns; selecting ``micros`` shows all three."""

ORDER_COUNTERS: dict[str, str] = {
    "bytes": "requested_bytes",
    "peak_bytes": "peak_bytes",
    "residual_bytes": "residual_bytes",
    "output_bytes": "output_bytes",
    "micros": "exec_micros",
    "accelerator_micros": "accelerator_exec_micros",
    "cpu_micros": "cpu_exec_micros",
    "params": "parameters",
    "float_ops": "float_ops",
}
"""Value of ``-order_by`` -> the counter whose total is the sort key, largest first."""

ORDERS: tuple[str, ...] = ("name", *ORDER_COUNTERS, "occurrence")
"""All values of ``-order_by``."""


def selected_times(select: frozenset[str]) -> list[tuple[str, str]]:
    """(counter, title) of the time columns that ``select`` shows."""
    everything = "micros" in select
    return [(counter, title) for name, counter, title in TIME_COLUMNS if everything or name in select]


def selected_sizes(select: frozenset[str]) -> list[tuple[str, str]]:
    """(counter, title) of the memory columns that ``select`` shows."""
    return [(counter, title) for name, counter, title in SIZE_COLUMNS if name in select]


def _docs(name: str) -> tuple[str, ...]:
    return ATTRIBUTES[name].docs if name in ATTRIBUTES else (f"Unknown select: {name}",)


def doc_block(view: str, select: frozenset[str]) -> str:
    """The explanations at the start of a report, with ``view``, that of its view, and the word ``Profile:``."""
    docs = "\n".join(line for name in sorted(select) for line in _docs(name))
    return f"\nDoc:\n{view}\n{docs}\n\nProfile:\n"


def legend(select: frozenset[str], *, of_tree: bool = False) -> str:
    """The line that names the columns; ``of_tree``: of a tree of nodes, and not of groups of them."""
    measured = [title for _, title in (*selected_sizes(select), *selected_times(select))]
    counted = [title for name, title in (("params", "# parameters"), ("float_ops", "# float_ops")) if name in select]
    runs = "op count (run|defined)" if of_tree else "op occurrence (run|defined)"
    named = (("device", "assigned devices"), ("op_types", "op types"), ("occurrence", runs))
    titles = [*counted, *measured] if of_tree else [*measured, *counted]
    titles += [title for name, title in (*named, ("input_shapes", "input shapes")) if name in select]
    return f"node name | {' | '.join(titles)}\n"
