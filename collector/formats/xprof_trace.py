"""The Chrome traces of XProf, TensorFlow 2 and JAX (``HOST.trace.json.gz``), rewritten as those of PyTorch's profiler.

Their events have no category: a process ``/device:GPU:N`` is a GPU, its threads ``Stream #S(Compute)`` are streams, and
its other threads (steps, modules, name scopes) show the same time under other names. All arguments are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from collector.formats.capture_builder import device_ids, is_api_name
from collector.formats.chrome_dialects import XPROF_GPU
from collector.formats.chrome_events import described_threads, process_names

OP = "op of XProf"
"""The argument in which `as_categorised` puts the op of GPU work."""
STATIC_SHARED = "static shared memory"
"""The argument in which it puts the part of the shared memory that is static, where it is known."""
_STREAM = re.compile(r"Stream #([0-9]{1,9})\b")
_COPY = re.compile(r"Memcpy([HDAP])2([HDAP])")
_DETAIL = re.compile(r"(\w+):(\S+)")
_INTEGERS = re.compile(r"[0-9]{1,19}(?:,[0-9]{1,19}){0,2}")
_PYTHON_FUNCTION = "$"
"""Prefix of the names of functions that the Python tracer recorded."""
_OTHER_ROWS = ("Steps", "waits", "overheads", "memory")
"""Threads of the host, in our own profiles, that hold neither calls nor annotations."""
_OPS = ("tf_op", "level 0", "hlo_op")
"""Arguments that name the op, the first that is there counts; ``annotation`` holds it too, with more behind it."""


def as_categorised(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same events with the categories, names and arguments of PyTorch's profiler."""
    units = {
        pid: f"{name} gpu:{found[1]}" for pid, name in process_names(events).items() if (found := XPROF_GPU.match(name))
    }
    numbers = device_ids(units.values())  # of several ranks each may have a GPU of the same number
    gpus = {pid: str(numbers[unit]) for pid, unit in units.items()}
    threads = described_threads(events)
    for event in events:
        given = event.get("args")
        arguments = given if isinstance(given, dict) else {}
        pid = event.get("pid")
        device = gpus.get(pid) if isinstance(pid, (int, str)) else None
        if event.get("ph") != "X":
            yield event
        elif device is None:
            yield event | _host_row(
                str(event.get("name", "")), arguments, str(threads.get((pid, event.get("tid")), {}).get("name"))
            )
        else:
            stream = _STREAM.match(str(threads.get((pid, event.get("tid")), {}).get("name")))
            if stream is None:
                yield event | {"cat": "gpu_user_annotation", "args": {"device": device}}
            else:
                yield event | _work(str(event.get("name", "")), arguments, device, stream[1])


def _host_row(name: str, arguments: dict[str, Any], thread: str) -> dict[str, Any]:
    """Members to add to an event of the host: the category of an API call or op, and its arguments."""
    if "correlation_id" in arguments or is_api_name(name):
        return {"cat": "runtime", "args": {"correlation": arguments.get("correlation_id")}}
    if name.startswith(_PYTHON_FUNCTION) or thread in _OTHER_ROWS:
        return {}
    return {"cat": "user_annotation"}


def _work(name: str, arguments: dict[str, Any], device: str, stream: str) -> dict[str, Any]:
    values = {"device": device, "stream": stream, "correlation": arguments.get("correlation_id"), OP: _op(arguments)}
    copied, cleared = arguments.get("memcpy_details"), arguments.get("memset_details")
    if copied is None and cleared is None and not name.startswith(("Memcpy", "Memset")):
        return {"cat": "kernel", "args": values | _shape(_details(arguments.get("kernel_details")))}
    details = _details(copied if cleared is None else cleared)
    size = details.get("size", details.get("num_bytes"))
    values |= {} if size is None else {"bytes": size}
    if cleared is not None or name.startswith("Memset"):
        return {"cat": "gpu_memset", "args": values}
    kind = _COPY.match(name)
    sides = [details[key].capitalize() for key in ("kind_src", "kind_dst") if key in details]
    places = f" ({' -> '.join(sides)})" if sides else ""
    return {"cat": "gpu_memcpy", "name": f"Memcpy {kind[1]}to{kind[2]}{places}" if kind else name, "args": values}


def _op(arguments: dict[str, Any]) -> str:
    """``layer/conv`` of ``layer/conv:Conv2D#shape=(2)#``."""
    name = next((str(arguments[key]) for key in (*_OPS, "annotation") if arguments.get(key)), "")
    path = name.partition("#")[0]
    return path.rpartition(":")[0] or path


def _details(text: Any) -> dict[str, str]:
    return dict(_DETAIL.findall(str(text)))


def _shape(details: dict[str, str]) -> dict[str, Any]:
    """The launch shape, each part of it optional."""
    numbers = {
        key: [int(part) for part in value.split(",")] for key, value in details.items() if _INTEGERS.fullmatch(value)
    }
    shared = [numbers[key][0] for key in ("shm", "static_shared", "dynamic_shared") if key in numbers]
    return {
        **({STATIC_SHARED: numbers["static_shared"][0]} if "static_shared" in numbers else {}),
        **({"registers per thread": numbers["regs"][0]} if "regs" in numbers else {}),
        **({"shared memory": sum(shared)} if shared else {}),
        **{key: numbers[key] for key in ("grid", "block") if key in numbers},
    }
