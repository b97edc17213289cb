"""The parts of CuPy that the plugin's GPU tests use, on the simulator: arrays are memory, launches are kernels."""

import weakref
from contextlib import nullcontext
from types import SimpleNamespace

from cuda.bindings import driver

float32 = SimpleNamespace(itemsize=4)
_blocks = {}


class ndarray:  # noqa: N801  (CuPy's own name)
    """Memory that is freed with the object; CuPy would return it to its pool, which `free_all_blocks` would empty."""

    def __init__(self, num_bytes):
        _, address = driver.cuMemAlloc(num_bytes)
        _blocks[address] = num_bytes
        weakref.finalize(self, _free, address)
        driver.cuMemsetD8Async(address, 0, num_bytes, 7)


def _free(address):
    del _blocks[address]
    driver.cuMemFree(address)


def zeros(count, dtype):
    return ndarray(count * dtype.itemsize)


class RawKernel:
    """A kernel by its name; its source is not compiled."""

    def __init__(self, source, name):
        assert f"void {name}(" in source
        self._name = name

    def __call__(self, grid, block, arguments):
        driver.cuLaunchKernel(self._name, *grid, 1, 1, *block, 1, 1, 0, 7, 0, 0)


def get_default_memory_pool():
    return SimpleNamespace(used_bytes=lambda: sum(_blocks.values()), free_all_blocks=lambda: None)


cuda = SimpleNamespace(
    Device=lambda device: nullcontext(),
    runtime=SimpleNamespace(getDeviceCount=lambda: 1, deviceSynchronize=driver.cuCtxSynchronize),
)
