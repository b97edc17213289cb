"""Kernel names: from the linker's spelling to the programmer's, and to one short word.

>>> demangle("_Z3addIfEvPT_i")
'void add<float>(float*, int)'
>>> short_name("_Z3addIfEvPT_i")
'add'
"""

from __future__ import annotations

import ctypes
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_CACHED_NAMES = 1 << 16


@lru_cache(_CACHED_NAMES)
def demangle(name: str) -> str:
    """Return the C++ name behind an Itanium-mangled ``name``; any other name as it is.

    The C++ runtime's own demangler does the work. Where that library is missing the name stays mangled.
    """
    if not name.startswith("_Z"):
        return name
    demangler = _demangler()
    return (demangler(name) if demangler else None) or name


@cache
def _demangler() -> Callable[[str], str | None] | None:
    for library in ("libstdc++.so.6", "libc++abi.so.1"):
        try:
            return _bind_demangler(ctypes.CDLL(library), ctypes.CDLL(None))
        except (OSError, AttributeError):  # not here, or not what its name says
            continue
    return None


def _bind_demangler(runtime: ctypes.CDLL, libc: ctypes.CDLL) -> Callable[[str], str | None]:
    function, release = runtime.__cxa_demangle, libc.free
    function.restype = ctypes.c_void_p  # not c_char_p: the pointer is needed to free it
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    release.restype = None
    release.argtypes = [ctypes.c_void_p]

    def demangle_or_none(name: str) -> str | None:
        status = ctypes.c_int()
        text = function(name.encode("utf-8", "surrogateescape"), None, None, ctypes.byref(status))
        if not text:
            return None
        try:
            return ctypes.string_at(text).decode("utf-8", "replace")
        finally:
            release(text)

    return demangle_or_none


@lru_cache(_CACHED_NAMES)
def short_name(name: str) -> str:
    """Return the function's own name, without scope, template arguments, parameters or return type.

    ``name`` may be mangled or not. The result is never empty and never holds ``:``, which separates op and kernel in
    a node name.
    """
    whole = demangle(name)
    found = _mangled_function(whole) if whole.startswith("_Z") else _function(whole)
    return found.replace(":", "_").strip() or "unknown"


# Operators hold the brackets that everything else is found by; their letters are hidden while brackets are counted.
_OPERATOR = re.compile(r"\boperator\s*(?:\(\)|\[\]|<=>|<<=|>>=|->\*|<<|>>|<=|>=|->|<|>)")
_ANONYMOUS = re.compile(r"\((?:anonymous namespace|anonymous class|anonymous)\)|<unnamed>|\[abi:[^\]]*\]")
_SUFFIX = re.compile(
    r"\s*(?:\[clone [^\]]*\]|\[with [^\]]*\]|\(\.[\w.]+\)|\b(?:const|volatile|noexcept|requires .*)|&&?)$"
)
_HIDDEN = "\x00"
_OPEN = {")": "(", ">": "<", "]": "[", "}": "{"}


def _function(name: str) -> str:
    """The unqualified name in a demangled declaration; as much of it as can be told when brackets do not match."""
    hidden = _ANONYMOUS.sub(lambda match: _HIDDEN * len(match[0]), name.rstrip())
    hidden = _OPERATOR.sub(lambda match: "operator" + _HIDDEN * (len(match[0]) - 8), hidden)
    hidden = hidden.replace("->", _HIDDEN * 2)
    end = len(hidden)
    while (match := _SUFFIX.search(hidden, 0, end)) and match.start():
        end = match.start()
    for bracket in ")>":  # the parameters, then the function's own template arguments
        if hidden[:end].endswith(bracket):
            start = _opening(hidden, end - 1)
            if start > 0:
                end = len(hidden[:start].rstrip())
    # Without brackets this is no C++ declaration but a name that may hold spaces.
    begin = _beginning(hidden, end) if end < len(name) else hidden.rfind("::") + 2 if "::" in hidden else 0
    return re.sub(r"\[abi:[^\]]*\]", "", name[begin:end])


def _opening(text: str, closing: int) -> int:
    """Where the bracket opens that closes at ``closing``; -1 if nowhere."""
    expected: list[str] = []
    for at in range(closing, -1, -1):
        letter = text[at]
        if letter in _OPEN and not (letter == ">" and expected and expected[-1] in "([{"):
            expected.append(_OPEN[letter])
        elif expected and letter == expected[-1]:
            expected.pop()
            if not expected:
                return at
    return -1


def _beginning(text: str, end: int) -> int:
    """Where the name that ends at ``end`` begins: after the last scope or return type outside brackets."""
    conversion = re.search(r"\boperator [^<>():]*$", text[:end])
    if conversion:
        return conversion.start()
    at = end - 1
    while at >= 0:
        letter = text[at]
        if letter in _OPEN:
            start = _opening(text, at)
            if start < 0:
                return at + 1
            at = start
        elif letter in ": \t\n*&":
            return at + 1
        at -= 1
    return 0


def _mangled_function(name: str) -> str:
    """The last source name of a mangled nested name, for where no demangler is at hand."""
    at, found = 2, ""
    while at < len(name) and name[at] in "NKVrL":
        at += 1
    if name.startswith("St", at):
        at += 2
    while match := re.compile(r"L?(\d+)").match(name, at):
        start = match.end()
        at = start + int(match[1])
        if at > len(name):
            break
        found = name[start:at]
        if at < len(name) and name[at] == "I":
            break
    return found or name
