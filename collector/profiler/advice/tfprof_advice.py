"""tfprof's advice: the utilization of accelerators, expensive operations, and ops with faster alternatives."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping

from collector.profiler import formatting
from collector.profiler.execution import is_on_accelerator
from collector.profiler.profile_options import Options, Output
from collector.profiler.reporter import Reporter
from collector.protos import AdviceProto, GraphNodeProto, MultiGraphNodeProto
from collector.text import terminal

log = logging.getLogger("collector.profiler")

_TOP = 3
_LINE_MIN_MICROS = 1000
"""Lines of code that take less time are not reported."""
_LINE_DEPTH = 3

_QUESTION = Options(order_by="micros", output=Output("none"))


def accelerator_utilization(reporter: Reporter) -> list[str]:
    """Accelerator time of each device over the time from its first start to its last end, in each node's last step."""
    busy: dict[str, list[int]] = {}
    for node in reporter.model.sorted_nodes():
        if not is_on_accelerator(node.device):
            continue
        execution = node.executions[max(node.executions)]
        spent, first, last = busy.get(node.device, [0, sys.maxsize, 0])
        spent += execution.accelerator_micros
        busy[node.device] = [spent, min(first, execution.start_micros), max(last, execution.last_end_micros)]
    reports = []
    for device, (spent, first, last) in sorted(busy.items()):
        if last > first:
            share = spent / (last - first)
            reports.append(f"device: {device} {'' if share >= 0.5 else 'low '}utilization: {share:.2f}")
    return reports


def operations(reporter: Reporter) -> list[str]:
    """Ops that have a faster sibling or a faster data format."""
    nodes = reporter.model.nodes.values()
    reports = []
    if any("BatchNorm" in node.name for node in nodes) and not any("FusedBatchNorm" in node.op_types for node in nodes):
        reports.append("Maybe use faster FusedBatchNorm instead of BatchNorm")
    on_accelerator = (node for node in nodes if is_on_accelerator(node.device))
    if any(node.attrs["data_format"].s == b"NHWC" for node in on_accelerator if "data_format" in node.attrs):
        reports.append("Found operation using NHWC data_format on GPU. Maybe NCHW is faster.")
    return reports


def expensive_operations(reporter: Reporter) -> list[str]:
    """The slowest op types, name scopes and lines of code: one report of several lines for each."""
    if not reporter.model.steps:
        log.error("Missing RunMetadata info. Skip ExpensiveOperationChecker")
        return []
    reports = [*_expensive_types(reporter), *_expensive_scopes(reporter)]
    if not reporter.model.has_traces:
        log.error("Missing op_log (code traces) for ExpensiveOperationChecker")
        return reports
    return [*reports, *_expensive_lines(reporter)]


def _expensive_types(reporter: Reporter) -> list[str]:
    node = root = reporter.ask("op", _QUESTION.replace(max_depth=_TOP, min_micros=1)).message
    lines: list[str] = []
    while node.children and len(lines) < _TOP:
        node = node.children[0]
        share = 100.0 * node.exec_micros / (root.total_exec_micros + 1e-10)
        times = _times(node.cpu_exec_micros, node.accelerator_exec_micros, node.exec_micros)
        lines.append(f"top {len(lines) + 1} operation type: {node.name}, {times} ({share:.2f}%)")
    return ["\n".join(lines)] if lines else []


def _expensive_scopes(reporter: Reporter) -> list[str]:
    root = reporter.ask("scope", _QUESTION.replace(max_depth=100, min_micros=100)).message
    if not isinstance(root, GraphNodeProto):
        raise TypeError(root)
    lines = [
        f"top {rank} graph node: {node.name}, "
        f"{_times(node.cpu_exec_micros, node.accelerator_exec_micros, node.exec_micros)}"
        for rank, node in enumerate(root.children[:_TOP], 1)
    ]
    return ["\n".join(lines)] if lines else []


def _expensive_lines(reporter: Reporter) -> list[str]:
    """Descends to the first branch of the call stacks: above it, all stacks are the program's start."""
    root = reporter.ask("code", _QUESTION.replace(max_depth=100, min_micros=1)).message
    if not isinstance(root, MultiGraphNodeProto):
        raise TypeError(root)
    while len(root.children) == 1:
        root = root.children[0]
    return ["\n".join(_slow_lines(root, 0))] if root.children else []


def _slow_lines(node: MultiGraphNodeProto, depth: int) -> list[str]:
    lines: list[str] = []
    if len(node.children) <= 1 or depth > _LINE_DEPTH:
        return lines
    for child in node.children[:_TOP]:
        if child.total_exec_micros >= _LINE_MIN_MICROS:
            times = _times(child.total_cpu_exec_micros, child.total_accelerator_exec_micros, child.total_exec_micros)
            lines.append(f"{'  ' * depth}{child.name}, {times}")
            lines.extend(_slow_lines(child, depth + 1))
    return lines


def _times(cpu: int, accelerator: int, total: int) -> str:
    written = (formatting.time(micros) for micros in (cpu, accelerator, total))
    return "cpu: {}, accelerator: {}, total: {}".format(*written)


CHECKERS: dict[str, Callable[[Reporter], list[str]]] = {
    "AcceleratorUtilizationChecker": accelerator_utilization,
    "ExpensiveOperationChecker": expensive_operations,
    "OperationChecker": operations,
}
"""Name -> checker. tfprof has a fourth checker, JobChecker, which never reports; it is accepted and has no entry."""


def advise(reporter: Reporter, options: Mapping[str, Mapping[str, str]] | None = None) -> AdviceProto:
    """Runs the checkers named in ``options`` (None: all). Their own options are accepted and, as in tfprof, unused."""
    advice = AdviceProto()
    for name, check in CHECKERS.items():
        if options is None or name in options:
            advice.checkers[name].reports.extend(check(reporter))
    return advice


def text(advice: AdviceProto) -> str:
    """One block per checker, in name order."""
    blocks = []
    for name, checker in sorted(advice.checkers.items()):
        blocks.append(f"\n{name}:\n" + "".join(f"{report}\n" for report in checker.reports if report))
    return "".join(blocks) + "\n" if blocks else ""


def show(advice: AdviceProto) -> None:
    """Prints the advice."""
    terminal.write(text(advice))
