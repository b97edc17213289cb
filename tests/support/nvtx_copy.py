"""A copy of NVTX in ctypes: what a program that includes the header has inside, with the functions of all modules.

It shares no code with the product: numbers and layouts are those of NVIDIA's nvtxTypes.h and nvToolsExt.h.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int32, c_uint16, c_uint32, c_uint64, c_void_p, c_wchar_p
from typing import Any

CORE, CUDA, CUDA_RUNTIME, CORE2 = 1, 2, 4, 5
ASCII, UNICODE, REGISTERED = 1, 2, 3
NOT_TRACKED = -2
V2_BYTES = 48


class Attributes(ctypes.Structure):
    """nvtxEventAttributes_t."""

    _fields_ = [
        ("version", c_uint16),
        ("size", c_uint16),
        ("category", c_uint32),
        ("color_type", c_int32),
        ("color", c_uint32),
        ("payload_type", c_int32),
        ("reserved", c_int32),
        ("payload", c_uint64),
        ("message_type", c_int32),
        ("message", c_void_p),
    ]


_POINTER = ctypes.POINTER(Attributes)
_CORE = {
    "MarkEx": (1, None, _POINTER),
    "MarkA": (2, None, c_char_p),
    "MarkW": (3, None, c_wchar_p),
    "RangeStartEx": (4, c_uint64, _POINTER),
    "RangeStartA": (5, c_uint64, c_char_p),
    "RangeStartW": (6, c_uint64, c_wchar_p),
    "RangeEnd": (7, None, c_uint64),
    "RangePushEx": (8, c_int, _POINTER),
    "RangePushA": (9, c_int, c_char_p),
    "RangePushW": (10, c_int, c_wchar_p),
    "RangePop": (11, c_int),
    "NameCategoryA": (12, None, c_uint32, c_char_p),
    "NameCategoryW": (13, None, c_uint32, c_wchar_p),
    "NameOsThreadA": (14, None, c_uint32, c_char_p),
    "NameOsThreadW": (15, None, c_uint32, c_wchar_p),
}
_CORE2 = {
    "DomainMarkEx": (1, None, c_void_p, _POINTER),
    "DomainRangeStartEx": (2, c_uint64, c_void_p, _POINTER),
    "DomainRangeEnd": (3, None, c_void_p, c_uint64),
    "DomainRangePushEx": (4, c_int, c_void_p, _POINTER),
    "DomainRangePop": (5, c_int, c_void_p),
    "DomainNameCategoryA": (8, None, c_void_p, c_uint32, c_char_p),
    "DomainNameCategoryW": (9, None, c_void_p, c_uint32, c_wchar_p),
    "DomainRegisterStringA": (10, c_void_p, c_void_p, c_char_p),
    "DomainRegisterStringW": (11, c_void_p, c_void_p, c_wchar_p),
    "DomainCreateA": (12, c_void_p, c_char_p),
    "DomainCreateW": (13, c_void_p, c_wchar_p),
    "DomainDestroy": (14, None, c_void_p),
}
_CUDA = {
    "NameCuDeviceA": (1, None, c_int, c_char_p),
    "NameCuDeviceW": (2, None, c_int, c_wchar_p),
    "NameCuContextA": (3, None, c_void_p, c_char_p),
    "NameCuContextW": (4, None, c_void_p, c_wchar_p),
    "NameCuStreamA": (5, None, c_void_p, c_char_p),
    "NameCuStreamW": (6, None, c_void_p, c_wchar_p),
    "NameCuEventA": (7, None, c_void_p, c_char_p),
    "NameCuEventW": (8, None, c_void_p, c_wchar_p),
}
_CUDA_RUNTIME = {
    "NameCudaDeviceA": (1, None, c_int, c_char_p),
    "NameCudaDeviceW": (2, None, c_int, c_wchar_p),
    "NameCudaStreamA": (3, None, c_void_p, c_char_p),
    "NameCudaStreamW": (4, None, c_void_p, c_wchar_p),
    "NameCudaEventA": (5, None, c_void_p, c_char_p),
    "NameCudaEventW": (6, None, c_void_p, c_wchar_p),
}
_MODULES = {CORE: _CORE, CUDA: _CUDA, CUDA_RUNTIME: _CUDA_RUNTIME, CORE2: _CORE2}
_SIZES = {CORE: 16, CUDA: 9, CUDA_RUNTIME: 7, CORE2: 16}

_GetTable = ctypes.CFUNCTYPE(c_int, c_uint32, ctypes.POINTER(c_void_p), ctypes.POINTER(c_uint32))
_GetExportTable = ctypes.CFUNCTYPE(c_void_p, c_uint32)


class _Callbacks(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("get_table", _GetTable)]


class NvtxCopy:
    """One copy, which has found the tool in ``library``. ``copy.RangePushA(b"name")`` calls as nvtxRangePushA does."""

    def __init__(self, library: str) -> None:
        self._functions = {module: (c_void_p * size)() for module, size in _SIZES.items()}
        self._places = {
            module: (c_void_p * size)(
                *(ctypes.addressof(self._functions[module]) + 8 * at if at else None for at in range(size))
            )
            for module, size in _SIZES.items()
        }
        self._callbacks = _Callbacks(ctypes.sizeof(_Callbacks), _GetTable(self._table))
        self._export = _GetExportTable(self._export_table)
        self._tool = ctypes.CDLL(library)
        self.initialised: int = self._tool.InitializeInjectionNvtx2(self._export)

    def _export_table(self, number: int) -> int | None:
        return ctypes.addressof(self._callbacks) if number == 1 else None

    def _table(self, module: int, table: Any, size: Any) -> int:
        if module not in self._places:
            return 0
        table[0] = ctypes.addressof(self._places[module])
        size[0] = _SIZES[module]
        return 1

    def __getattr__(self, name: str) -> Any:
        module = next((module for module, functions in _MODULES.items() if name in functions), None)
        if module is None:
            raise AttributeError(name)
        number, *signature = _MODULES[module][name]
        address = self._functions[module][number]
        # NVTX does nothing where no tool has written a function.
        return ctypes.CFUNCTYPE(*signature)(address) if address else lambda *_: None


def attributes(message: bytes | str | int, *, size: int = V2_BYTES, **fields: int) -> Any:
    """The attributes of an event by reference; a number is the handle of a registered string."""
    found = Attributes(2, size, **fields)
    if isinstance(message, bytes):
        found.message_type, kept = ASCII, ctypes.create_string_buffer(message)
        found.message = ctypes.addressof(kept)
    elif isinstance(message, str):
        found.message_type, kept = UNICODE, ctypes.create_unicode_buffer(message)
        found.message = ctypes.addressof(kept)
    else:
        found.message_type, kept = REGISTERED, None
        found.message = message
    found._kept = kept
    return ctypes.pointer(found)
