"""The Chrome traces of XProf, TensorFlow 2 and JAX (``HOST.trace.json.gz``), rewritten as those of PyTorch's profiler.

Their events have no category: a process ``/device:GPU:N`` is a GPU, its threads ``Stream #S(Compute)`` are streams, and
its other threads (steps, modules, name scopes) show the same time under other names. All arguments are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from collector.formats.chrome_dialects import XPROF_GPU
from collector.formats.chrome_events import described_threads, process_names

OP = "op of XProf"
"""The argument in which `as_categorised` puts the op of GPU work."""
_STREAM = re.compile(r"Stream #([0-9]{1,9})\b")
_COPY = re.compile(r"Memcpy([HDAP])2([HDAP])")
_DETAIL = re.compile(r"(\w+):(\S+)")
_INTEGERS = re.compile(r"[0-9]{1,19}(?:,[0-9]{1,19}){0,2}")
_OPS = ("tf_op", "level 0", "hlo_op")
"""Arguments that name the op, the first that is there counts; ``annotation`` holds it too, with more behind it."""


def as_categorised(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same events with the categories, names and arguments of PyTorch's profiler."""
    gpus = {pid: found[1] for pid, name in process_names(events).items() if (found := XPROF_GPU.match(name))}
    threads = described_threads(events)
    for event in events:
        given = event.get("args")
        arguments = given if isinstance(given, dict) else {}
        pid = event.get("pid")
        device = gpus.get(pid) if isinstance(pid, (int, str)) else None
        if event.get("ph") != "X":
            yield event
        elif device is None:
            is_call = "correlation_id" in arguments
            yield event | ({"cat": "runtime", "args": {"correlation": arguments["correlation_id"]}} if is_call else {})
        else:
            stream = _STREAM.match(str(threads.get((pid, event.get("tid")), {}).get("name")))
            if stream is None:
                yield event | {"cat": "gpu_user_annotation", "args": {"device": device}}
            else:
                yield event | _work(str(event.get("name", "")), arguments, device, stream[1])


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
        **({"registers per thread": numbers["regs"][0]} if "regs" in numbers else {}),
        **({"shared memory": sum(shared)} if shared else {}),
        **{key: numbers[key] for key in ("grid", "block") if key in numbers},
    }
