"""Reader of Proton's trees: nodes with a frame, metrics and children, then the devices by type and number.

``[{"frame": {"name": "ROOT"}, "metrics": {}, "children": [...]}, {"CUDA": {"0": {"arch": "90", "num_sms": 132}}}]``
"""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from collector.errors import InvalidFileError
from collector.formats.call_sums import CallSum, CallSums, SummedDevice
from collector.formats.chrome_events import text
from collector.formats.proton_words import FLOPS, ROOT, frame_name

if TYPE_CHECKING:
    from collector.formats.file_content import FileContent

_LARGEST_SUM = 1 << 62
"""The maximum sum of one figure over all nodes, so that every sum fits into 64 bits."""
_LARGEST_DEVICE = (1 << 32) - 1
_LONGEST_INTEGER = 30
_READ = frozenset({"time (ns)", "count", "device_id", "device_type", "bytes"})
_IMPOSSIBLE = "metrics that are not possible numbers (taken as 0)"


def read_tree(content: FileContent) -> CallSums:
    """The sums in a profile.

    Raises:
        collector.InvalidFileError: it is cut off or damaged, or has no sums. The paths of a file that was cut off are
            unknown, because the name of a frame follows the nodes inside it.
    """
    tree = _Tree(_parsed(content))
    tree.unread.update(content.skipped)
    if not any(row.runs for row in tree.rows):
        reasons = "".join(f"; {reason}: {count}" for reason, count in sorted(tree.unread.items()))
        what = f"a profile of Proton in which no node has both a time and a count{reasons}"
        raise InvalidFileError(f"{content.name}: this is {what}", "Record it with kernels: proton.start(), then launch")
    return CallSums(content.name, tuple(tree.rows), tuple(tree.devices), tree.num_nodes, tree.depth, dict(tree.unread))


def _parsed(content: FileContent) -> list[Any]:
    what = f"{content.name}: this is a profile of Proton"
    remedy = "Copy or record it again: the names of outer frames are at the end of the file"
    try:
        found = json.loads(
            content.data.decode("utf-8-sig", "replace"),
            parse_float=_exactly,  # so that no time goes through a double
            parse_int=lambda digits: int(digits) if len(digits) <= _LONGEST_INTEGER else None,
            strict=False,
        )
    except json.JSONDecodeError as error:
        raise InvalidFileError(
            f"{what} that is cut off or damaged at character {error.pos} ({error.msg})", remedy
        ) from error
    except RecursionError as error:
        raise InvalidFileError(f"{what} that is nested too deeply") from error
    assert isinstance(found, list)
    return found


def _exactly(number: str) -> Decimal | None:
    try:
        return Decimal(number)
    except InvalidOperation:  # its exponent is too large
        return None


class _Tree:
    """The nodes and devices of one file."""

    def __init__(self, found: list[Any]) -> None:
        self.rows: list[CallSum] = []
        self.devices: list[SummedDevice] = []
        self.unread: Counter[str] = Counter()
        self.num_nodes = self.depth = 0
        self._sums: Counter[str] = Counter()
        for entry in found:
            if isinstance(entry, dict) and ("frame" in entry or "children" in entry):
                self._add_root(entry)
            elif isinstance(entry, dict):
                self._add_devices(entry)
            else:
                self.unread["entries that are neither nodes nor devices"] += 1

    def _add_root(self, root: dict[str, Any]) -> None:
        """Add a tree. The root is not a frame of the program but the profile itself."""
        waiting: list[tuple[Any, tuple[str, ...], int]] = [(root, (), 1)]
        while waiting:
            node, around, depth = waiting.pop()
            if not isinstance(node, dict):
                self.unread["nodes that are not objects"] += 1
                continue
            self.num_nodes += 1
            self.depth = max(self.depth, depth)
            name = self._name(node.get("frame"))
            path = around if node is root and name == ROOT else (*around, name)
            self._add_node(path or (name,), node.get("metrics"))
            children = node.get("children", [])
            if not isinstance(children, list):
                self.unread["children that are not lists"] += 1
                continue
            waiting.extend((child, path, depth + 1) for child in reversed(children))

    def _name(self, frame: Any) -> str:
        name = frame.get("name") if isinstance(frame, dict) else None
        if not isinstance(name, str) or not name:
            self.unread["nodes without a name"] += 1
            return "(no name)"
        return frame_name(name)

    def _add_node(self, path: tuple[str, ...], metrics: Any) -> None:
        if metrics is None:
            return
        if not isinstance(metrics, dict):
            self.unread["metrics that are not objects"] += 1
            return
        has_time, has_count = "time (ns)" in metrics, "count" in metrics
        total_ns, count, num_bytes = (self._figure(metrics, name) for name in ("time (ns)", "count", "bytes"))
        flops = sum(self._figure(metrics, name, of="flops") for name in metrics if FLOPS.fullmatch(name))
        others = sum(name not in _READ and not FLOPS.fullmatch(name) for name in metrics)
        if others:
            self.unread["metrics of other names"] += others
        if has_time != has_count:
            self.unread["nodes with a time or a count alone (their time is left out)"] += 1
        if not (has_time and has_count and count):
            total_ns = count = 0
        if count or num_bytes or flops:
            device_type = metrics.get("device_type", "")
            self.rows.append(
                CallSum(
                    path,
                    text(device_type) if isinstance(device_type, str) else "",
                    self._device_id(metrics, is_needed=count > 0),
                    count,
                    total_ns,
                    num_bytes,
                    flops,
                )
            )

    def _figure(self, metrics: dict[str, Any], name: str, of: str = "") -> int:
        """A metric as the nearest whole number; 0: it is missing or impossible."""
        value = metrics.get(name, 0)
        if type(value) in (int, Decimal) and 0 <= value <= _LARGEST_SUM:
            number: int = round(value)
            whole = self._sums[of or name] + number
            if whole <= _LARGEST_SUM:
                self._sums[of or name] = whole
                return number
        self.unread[_IMPOSSIBLE] += 1
        return 0

    def _device_id(self, metrics: dict[str, Any], *, is_needed: bool) -> int:
        number = _device_number(metrics.get("device_id"))
        if number < 0 and is_needed:
            self.unread["devices missing or not possible (taken as 0)"] += 1
        return max(number, 0)

    def _add_devices(self, by_type: dict[str, Any]) -> None:
        for device_type, by_number in by_type.items():
            for number, about in by_number.items() if isinstance(by_number, dict) else ():
                device_id = _device_number(number)
                if not isinstance(about, dict) or device_id < 0:
                    self.unread["devices that cannot be read"] += 1
                    continue
                figures = (self._figure(about, name) for name in _DEVICE_FIGURES)
                architecture = about.get("arch", "")
                known = text(architecture) if isinstance(architecture, str) else ""
                self.devices.append(SummedDevice(text(device_type), device_id, known, *figures))


_DEVICE_FIGURES = ("num_sms", "clock_rate", "memory_clock_rate", "bus_width")


def _device_number(value: Any) -> int:
    """The number of a device; -1 for any other value."""
    digits = str(value) if type(value) in (int, str) else ""
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= len(str(_LARGEST_DEVICE))):
        return -1
    return int(digits) if int(digits) <= _LARGEST_DEVICE else -1
