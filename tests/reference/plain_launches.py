"""Matches activities with the calls that launched them: the readable twin of native/draw/launches.cpp."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from reference.plain_activities import Activity, scheduled_ns

Key = tuple[Any, ...]


@dataclass(slots=True)
class Launch:
    """One call, and the activities that it launched."""

    caller: int | None = None
    """Ordinal of the call's node."""
    num_activities: int = 0
    first_flow: int = 0
    num_told: int = 0


class Launches:
    """An activity is matched with its call by the first of these keys that it has.

    A correlation id; the thread and time of the launch, which are those of the call; or, in TensorFlow's own
    recordings, the op's name, which matches the last op of that name that started before the activity.
    """

    def __init__(self) -> None:
        self._launches: dict[Key, Launch] = {}
        self._names: set[str] = set()
        self._calls: dict[str, list[tuple[int, int, Launch]]] = {}

    def add_activity(self, node: Any, activity: Activity, rank: int) -> None:
        """Called first, for all activities."""
        key = _key(node, rank)
        if key:
            self._launches.setdefault(key, Launch())
        if not node.correlation_id:
            self._names.add(activity.op or activity.name)

    def add_call(self, node: Any, start: int, ordinal: int, rank: int) -> None:
        """Called second, for all calls. Of several calls with one correlation id, the first counts."""
        for launch in self._keyed(node, start, rank):
            if launch.caller is None:
                launch.caller = ordinal
        if node.node_name in self._names:
            calls = self._calls.setdefault(node.node_name, [])
            calls.append((start, ordinal, Launch(caller=ordinal)))

    def join(self) -> None:
        """Called third, once."""
        for calls in self._calls.values():
            calls.sort(key=lambda call: call[:2])

    def count_activity(self, node: Any, activity: Activity, start: int, rank: int) -> None:
        """Called fourth, for all activities."""
        launch = self._launch_of(node, activity, start, rank)
        if launch:
            launch.num_activities += 1

    def flows_from(self, node: Any, start: int, ordinal: int, rank: int, next_flow: int) -> int:
        """The number of arrows that start at a call; the first has the id ``next_flow``."""
        by_name = [launch for _, other, launch in self._calls.get(node.node_name, ()) if other == ordinal]
        number = 0
        for launch in [*self._keyed(node, start, rank), *by_name]:
            if launch.caller == ordinal and not launch.first_flow:
                launch.first_flow = next_flow + number
                number += launch.num_activities
        return number

    def flow_to(self, node: Any, activity: Activity, start: int, rank: int) -> int:
        """The arrow that ends at an activity; 0: none."""
        launch = self._launch_of(node, activity, start, rank)
        if launch is None or not launch.first_flow:
            return 0
        launch.num_told += 1
        return launch.first_flow + launch.num_told - 1

    def _keyed(self, node: Any, start: int, rank: int) -> list[Launch]:
        keys: list[Key] = [("correlation", rank, node.correlation_id)] if node.correlation_id else []
        keys += [("time", rank, node.thread_id, start)] if start else []
        return [self._launches[key] for key in keys if key in self._launches]

    def _launch_of(self, node: Any, activity: Activity, start: int, rank: int) -> Launch | None:
        key = _key(node, rank)
        launch = self._launches.get(key) if key else None
        if launch and launch.caller is not None:
            return launch
        if node.correlation_id:
            return None
        calls = self._calls.get(activity.op or activity.name, [])
        index = bisect_right(calls, start, key=lambda call: call[0])
        return calls[index - 1][2] if index else None


def _key(node: Any, rank: int) -> Key | None:
    if node.correlation_id:
        return "correlation", rank, node.correlation_id
    scheduled = scheduled_ns(node)
    return ("time", rank, node.thread_id, scheduled) if scheduled else None
