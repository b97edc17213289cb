"""The parts of PyTorch that the plugin's GPU tests use, on the simulator: tensors are memory, operations kernels."""

import weakref
from types import SimpleNamespace

from cuda.bindings import driver

BYTES = 4
_blocks = {}


class Tensor:
    """Memory that is freed with the object; PyTorch would keep it in a cache, which `empty_cache` would empty."""

    def __init__(self, count):
        _, address = driver.cuMemAlloc(BYTES * count)
        _blocks[address] = BYTES * count
        weakref.finalize(self, _free, address)

    def add_(self, other):
        driver.cuLaunchKernel("vectorized_elementwise_kernel<add>", 4, 1, 1, 128, 1, 1, 0, 7, 0, 0)
        return self

    def mul_(self, other):
        driver.cuLaunchKernel("vectorized_elementwise_kernel<mul>", 4, 1, 1, 128, 1, 1, 0, 7, 0, 0)
        return self


def _free(address):
    del _blocks[address]
    driver.cuMemFree(address)


def ones(count, device):
    assert device == "cuda"
    return Tensor(count).add_(1)


def empty(count, device):
    assert device == "cuda"
    return Tensor(count)


cuda = SimpleNamespace(
    is_initialized=lambda: True,
    synchronize=driver.cuCtxSynchronize,
    device_count=lambda: 1,
    memory_allocated=lambda device: sum(_blocks.values()),
    empty_cache=lambda: None,
    memory_snapshot=lambda: [
        {"address": address, "blocks": [{"state": "active_allocated", "address": address, "size": num_bytes}]}
        for address, num_bytes in _blocks.items()
    ],
)
