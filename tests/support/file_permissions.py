"""The permissions of files, for root as well, who may read everything otherwise."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_VERSION_3 = 0x20080522
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1 << 1, 1 << 2
"""The capabilities that pass over permissions, see linux/capability.h."""

_GET_SECURE_BITS, _SET_SECURE_BITS, _NO_SETUID_FIXUP = 27, 28, 1 << 2
"""Operations of prctl, and the bit with which access(2) asks for the same capabilities as open(2)."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@contextmanager
def permissions_hold() -> Iterator[None]:
    """Permissions hold in this thread, and in the threads that it starts meanwhile, whoever the user is."""
    libc = ctypes.CDLL(None, use_errno=True)
    data = (_Data * 2)()

    def call(function: str) -> None:
        if getattr(libc, function)(ctypes.byref(_Header(_VERSION_3, 0)), data):
            error = ctypes.get_errno()
            raise OSError(error, f"{function}: {os.strerror(error)}")

    call("capget")
    effective = data[0].effective
    if not effective & (_DAC_OVERRIDE | _DAC_READ_SEARCH):
        yield
        return
    bits = libc.prctl(_GET_SECURE_BITS)
    libc.prctl(_SET_SECURE_BITS, bits | _NO_SETUID_FIXUP)
    data[0].effective = effective & ~(_DAC_OVERRIDE | _DAC_READ_SEARCH)
    call("capset")
    try:
        yield
    finally:
        data[0].effective = effective
        call("capset")
        libc.prctl(_SET_SECURE_BITS, bits)
