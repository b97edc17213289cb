"""Kernel names: from the linker's spelling to the programmer's, and to a short one.

>>> demangle("_Z3addIfEvPT_i")
'void add<float>(float*, int)'
>>> short_name("_Z3addIfEvPT_i")
'add<float>'
>>> short_name("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm>(cutlass_80_tensorop_s1688gemm::Params)")
'Kernel<cutlass_80_tensorop_s1688gemm>'
"""

from __future__ import annotations

import re
import zlib
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from collector.errors import MissingDependencyError
from collector.runtime.extension import convert_extension

if TYPE_CHECKING:
    from collections.abc import Callable

_CACHED_NAMES = 1 << 16


@lru_cache(_CACHED_NAMES)
def demangle(name: str) -> str:
    """Return the C++ name of an Itanium-mangled ``name``; other names are returned unchanged.

    The name also stays as it is if the result would be more than 64 times as long and 4096 bytes: a mangled name of a
    few bytes can stand for gigabytes. Without the extension module it stays mangled.
    """
    if not name.startswith("_Z"):
        return name
    demangler = _demangler()
    given = name.encode("utf-8", "surrogateescape")
    whole = given if demangler is None else demangler(given)
    return name if whole == given else whole.decode("utf-8", "replace")


@cache
def _demangler() -> Callable[[bytes], bytes] | None:
    try:
        return convert_extension.demangle
    except MissingDependencyError:
        return None


_LONGEST_ARGUMENTS = 80


@lru_cache(_CACHED_NAMES)
def short_name(name: str) -> str:
    """Return the function's own name with its template arguments, without scope, parameters or return type.

    The template arguments distinguish most kernels: every CUTLASS kernel is ``cutlass::Kernel<…>``, and every
    elementwise kernel of PyTorch is ``vectorized_elementwise_kernel<…>``. They are written without namespaces, casts
    and the parameters of enclosing functions. Arguments of more than 80 characters are truncated and end with a
    checksum of all of them, ``Kernel<a, b~5e0a12f3>``. Overloads with equal template arguments, and functions with
    equal names in two namespaces, share one short name.

    ``name`` may be mangled. The result is never empty and never contains ``:``, which separates op and kernel in a node
    name.
    """
    whole = demangle(name)
    own, arguments = _mangled_function(whole) if whole.startswith("_Z") else _function(whole)
    short = f"{own}<{_short_arguments(arguments)}>" if arguments else own
    return short.replace(":", "_").strip() or "unknown"


# The names of operators contain brackets, which are hidden while brackets are matched.
_OPERATOR = re.compile(r"\boperator\s*(?:\(\)|\[\]|<=>|<<=|>>=|->\*|<<|>>|<=|>=|->|<|>)")
_ANONYMOUS = re.compile(r"\((?:anonymous namespace|anonymous class|anonymous)\)|<unnamed>|\[abi:[^\]]*\]")
_SUFFIX = re.compile(
    r"\s*(?:\[clone [^\]]*\]|\[with [^\]]*\]|\(\.[\w.]+\)|\b(?:const|volatile|noexcept|requires .*)|&&?)$"
)
_HIDDEN = "\x00"
_OPEN = {")": "(", ">": "<", "]": "[", "}": "{"}


def _function(name: str) -> tuple[str, str]:
    """The unqualified name in a demangled declaration, and the template arguments without their brackets.

    If brackets do not match, only the parts that are certain.
    """
    hidden = _ANONYMOUS.sub(lambda match: _HIDDEN * len(match[0]), name.rstrip())
    hidden = _OPERATOR.sub(lambda match: "operator" + _HIDDEN * (len(match[0]) - 8), hidden)
    hidden = hidden.replace("->", _HIDDEN * 2)
    end = len(hidden)
    while (match := _SUFFIX.search(hidden, 0, end)) and match.start():
        end = match.start()
    arguments = ""
    for bracket in ")>":  # the parameters, then the function's own template arguments
        if hidden[:end].endswith(bracket):
            start = _opening(hidden, end - 1)
            if start > 0:
                arguments = name[start + 1 : end - 1] if bracket == ">" else ""
                end = len(hidden[:start].rstrip())
    # Without brackets this is not a C++ declaration but a name that may contain spaces.
    begin = _beginning(hidden, end) if end < len(name) else hidden.rfind("::") + 2 if "::" in hidden else 0
    return re.sub(r"\[abi:[^\]]*\]", "", name[begin:end]), arguments


_NO_SCOPE = re.compile(r"\((?:anonymous namespace|anonymous class|anonymous)\)::|<unnamed>::|\[abi:[^\]]*\]")
_CAST = re.compile(r"\((?!bool\))[A-Za-z_][\w:]*(?: (?:int|long|short|char))*\)(?=-?\d)")
_NUMBER = re.compile(r"\b(\d+)(?:u|l|ul|ll|ull)\b", re.IGNORECASE)
_LAMBDA = re.compile(r"\{lambda\(([^(){}]*)\)#(\d+)\}|\[lambda\(([^()[\]]*)\) \(instance (\d+)\)\]")
_CALL = re.compile(r"(?:::)?\boperator ?\(\)(?=\()")
_NAMESPACES = re.compile(r"(?<![\w>)}\]])(?:[A-Za-z_]\w*::)+")
_AFTER_PARAMETERS = re.compile(r"(?: (?:const|volatile))*::")


def _short_arguments(arguments: str) -> str:
    """Template arguments in short form: ``FillFunctor<Half>, Array<char*, 1>``."""
    text = _NO_SCOPE.sub("", arguments)
    text = text.replace("(bool)1", "true").replace("(bool)0", "false")
    text = _NUMBER.sub(r"\1", _CAST.sub("", text))
    text = _LAMBDA.sub(_lambda, text)
    text = _without_outer_parameters(_CALL.sub("", text))
    text = re.sub(r"\s*(?=[>*&])", "", _NAMESPACES.sub("", text).replace("::", ".")).strip()
    if len(text) <= _LONGEST_ARGUMENTS:
        return text
    checksum = f"~{zlib.crc32(arguments.encode('utf-8', 'surrogatepass')):08x}"
    return text[: _LONGEST_ARGUMENTS - len(checksum)].rstrip() + checksum


def _lambda(found: re.Match[str]) -> str:
    """``{lambda(float)#1}``, or ``[lambda(float) (instance 1)]`` of another demangler, as ``lambda1[float]``."""
    parameters = found[1] or found[3]
    return f"lambda{found[2] or found[4]}" + (f"[{parameters}]" if parameters else "")


def _without_outer_parameters(text: str) -> str:
    """``f(int)::g`` as ``f.g``: a function's parameters say nothing about the entities defined in it."""
    kept: list[str] = []
    opened: list[int] = []
    at = 0
    while at < len(text):
        letter = text[at]
        at += 1
        if letter == "(":
            opened.append(len(kept))
        kept.append(letter)
        if letter == ")" and opened:
            start = opened.pop()
            following = _AFTER_PARAMETERS.match(text, at)
            if following is not None:
                kept[start:] = "."
                at = following.end()
    return "".join(kept)


def _opening(text: str, closing: int) -> int:
    """The index of the bracket that the one at ``closing`` closes; -1 if there is none."""
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
    """The start of the name that ends at ``end``: after the last scope or return type outside brackets."""
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


def _mangled_function(name: str) -> tuple[str, str]:
    """The last source name of a mangled nested name, and its arguments unchanged: used without a demangler."""
    at, found = 2, ""
    while at < len(name) and name[at] in "NKVrL":
        at += 1
    if name.startswith("St", at):
        at += 2
    arguments = ""
    while match := re.compile(r"L?(\d+)").match(name, at):
        start = match.end()
        at = start + int(match[1])
        if at > len(name):
            break
        found = name[start:at]
        if at < len(name) and name[at] == "I":
            arguments = name[at + 1 :]
            break
    return found or name, arguments if found else ""
