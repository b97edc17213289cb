"""The simulated GPU for the demo's step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.demo.demo_step import BUFFERS, KERNELS, STREAMS
from collector.testing.simulator.simulated_gpu import SimulatedGpu

if TYPE_CHECKING:
    from types import TracebackType

_STREAM_IDS = {name: number for number, name in enumerate(STREAMS, 7)}  # CUPTI numbers a program's streams from 7
_KERNEL_BYTES_PER_NS = 2000
_COPY_BYTES_PER_NS = 25
_CLEAR_BYTES_PER_NS = 1500
_LEAST_NS = 2_000
_BLOCK = 256
_ELEMENTS_PER_BLOCK = 4096


class SimulatedDemoGpu:
    """A `collector.demo.demo_step.DemoGpu` whose kernels take the time that a fast card would need for their bytes."""

    def __init__(self, reason: str) -> None:
        """``reason``: why there is no real GPU."""
        self.description = f"a SIMULATED GPU: its times are made up ({reason})"
        self._gpu = SimulatedGpu()

    def __enter__(self) -> SimulatedDemoGpu:
        self._gpu.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._gpu.__exit__(kind, error, traceback)

    def launch(self, kernel: str, buffer: str, *, passes: int, stream: str) -> None:
        """See `collector.demo.demo_step.DemoGpu`."""
        num_bytes = BUFFERS[buffer]
        self._gpu.launch(
            MANGLED[kernel],
            stream=_STREAM_IDS[stream],
            duration_ns=_LEAST_NS + 2 * passes * num_bytes // _KERNEL_BYTES_PER_NS,
            grid=(-(-num_bytes // 4 // _ELEMENTS_PER_BLOCK), 1, 1),
            block=(_BLOCK, 1, 1),
        )

    def upload(self, buffer: str, *, stream: str) -> None:
        """See `collector.demo.demo_step.DemoGpu`."""
        self._copy("HtoD", buffer, stream)

    def download(self, buffer: str, *, stream: str) -> None:
        """See `collector.demo.demo_step.DemoGpu`."""
        self._copy("DtoH", buffer, stream)

    def clear(self, buffer: str, *, stream: str) -> None:
        """See `collector.demo.demo_step.DemoGpu`."""
        num_bytes = BUFFERS[buffer]
        duration_ns = _LEAST_NS + num_bytes // _CLEAR_BYTES_PER_NS
        self._gpu.memset(num_bytes, stream=_STREAM_IDS[stream], duration_ns=duration_ns)

    def wait(self, stream: str, *, after: str) -> None:
        """See `collector.demo.demo_step.DemoGpu`."""
        self._gpu.wait_event(self._gpu.record_event(stream=_STREAM_IDS[after]), stream=_STREAM_IDS[stream])

    def synchronize(self) -> None:
        """See `collector.demo.demo_step.DemoGpu`."""
        self._gpu.synchronize()

    def _copy(self, kind: str, buffer: str, stream: str) -> None:
        num_bytes = BUFFERS[buffer]
        self._gpu.memcpy(
            "HtoD" if kind == "HtoD" else "DtoH",
            num_bytes,
            stream=_STREAM_IDS[stream],
            duration_ns=_LEAST_NS + num_bytes // _COPY_BYTES_PER_NS,
            src="pinned" if kind == "HtoD" else "device",
            dst="device" if kind == "HtoD" else "pinned",
        )


MANGLED = {name: f"_ZN4demo{len(name)}{name}IfEEvPT_yi" for name in KERNELS}
"""Kernel -> the name that a compiler gives to ``demo::NAME<float>(float*, unsigned long long, int)``."""
