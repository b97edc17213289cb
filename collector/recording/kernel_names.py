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

CACHED_NAMES = 1 << 16
"""The number of names about which a function remembers its result: steps that are compared run the same kernels."""


@lru_cache(CACHED_NAMES)
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


@lru_cache(CACHED_NAMES)
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
_ANONYMOUS = re.compile(r"\((?:anonymous namespace|anonymous class|anonymous)\)|<unnamed>|\[abi:[^\[\]]*\]")
_ABI_TAG = re.compile(r"\[abi:[^\[\]]*\]")
_HIDDEN = "\x00"
_OPEN = {")": "(", ">": "<", "]": "[", "}": "{"}

# A declaration is searched from its end. A regular expression is fast at that in the reversed text only.
_SUFFIX = re.compile(
    r"(?:\][^\]]* (?:enolc|htiw)\[|\)[\w.]+\.\(|(?:tsnoc|elitalov|tpecxeon)\b|&&?)\s*"
)  # [clone .isra.0], [with T = int], (.constprop.0), const, volatile, noexcept, & and &&
_CONSTRAINT = re.compile(r"\brequires ")
_BRACKET = re.compile(r"[()<>[\]{}]")
_CONVERSION = re.compile(r"\boperator ")
_SCOPE_OR_BRACKET = re.compile(r"[)>\]}: \t\n*&]")


def _function(name: str) -> tuple[str, str]:
    """The unqualified name in a demangled declaration, and the template arguments without their brackets.

    If brackets do not match, only the parts that are certain.
    """
    hidden = _ANONYMOUS.sub(lambda match: _HIDDEN * len(match[0]), name.rstrip())
    if "operator" in hidden:
        hidden = _OPERATOR.sub(lambda match: "operator" + _HIDDEN * (len(match[0]) - 8), hidden)
    hidden = hidden.replace("->", _HIDDEN * 2)
    backwards = hidden[::-1]
    end = _without_suffixes(backwards, len(hidden))
    constraint = _CONSTRAINT.search(hidden, 0, end) if "requires " in hidden else None
    if constraint and (start := len(hidden[: constraint.start()].rstrip())):
        end = _without_suffixes(backwards, start)
    arguments = ""
    for bracket in ")>":  # the parameters, then the function's own template arguments
        if hidden.endswith(bracket, 0, end):
            start = _opening(backwards, end - 1)
            if start > 0:
                arguments = name[start + 1 : end - 1] if bracket == ">" else ""
                end = len(hidden[:start].rstrip())
    # Without brackets this is not a C++ declaration but a name that may contain spaces.
    begin = _beginning(hidden, backwards, end) if end < len(name) else hidden.rfind("::") + 2 if "::" in hidden else 0
    return _ABI_TAG.sub("", name[begin:end]), arguments


_NO_SCOPE = re.compile(r"\((?:anonymous namespace|anonymous class|anonymous)\)::|<unnamed>::|\[abi:[^\[\]]*\]")
_CAST = re.compile(r"\((?!bool\))[A-Za-z_][\w:]*(?: (?:int|long|short|char))*\)(?=-?\d)")
_NUMBER = re.compile(r"(\d(?<!\w\d)\d*)(?:[uU]?[lL]{1,2}|[uU])\b")
_LAMBDA = re.compile(r"\{lambda\(([^(){}]*)\)#(\d+)\}|\[lambda\(([^()[\]]*)\) \(instance (\d+)\)\]")
_CALL = re.compile(r"(?:::)?\boperator ?\(\)(?=\()")
_NAMESPACES = re.compile(r"(?<![\w>)}\]])(?:[A-Za-z_]\w*::)+")
_PARENTHESIS = re.compile(r"\(|\)((?: (?:const|volatile))*::)?")
_SPACES_BEFORE_SIGN = re.compile(r"\s(?<!\s\s)\s*(?=[>*&])")  # from the first of them, so that each is looked at once


def _short_arguments(arguments: str) -> str:
    """Template arguments in short form: ``FillFunctor<Half>, Array<char*, 1>``."""
    text = _NO_SCOPE.sub("", arguments)
    text = text.replace("(bool)1", "true").replace("(bool)0", "false")
    text = _NUMBER.sub(r"\1", _CAST.sub("", text))
    text = _LAMBDA.sub(_lambda, text)
    if "operator" in text:
        text = _CALL.sub("", text)
    text = _without_outer_parameters(text)
    text = _SPACES_BEFORE_SIGN.sub("", _NAMESPACES.sub("", text).replace("::", ".")).strip()
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
    for parenthesis in _PARENTHESIS.finditer(text):
        kept.append(text[at : parenthesis.start()])
        at = parenthesis.end()
        if parenthesis[0] == "(":
            opened.append(len(kept))
        elif opened:
            start = opened.pop()
            if parenthesis[1]:
                kept[start:] = "."
                continue
        kept.append(parenthesis[0])
    kept.append(text[at:])
    return "".join(kept)


def _without_suffixes(backwards: str, end: int) -> int:
    """The end of a declaration that ends at ``end``, without the words and brackets behind its parameters."""
    while (match := _SUFFIX.match(backwards, len(backwards) - end)) and match.end() < len(backwards):
        end = len(backwards) - match.end()
    return end


def _opening(backwards: str, closing: int) -> int:
    """The index of the bracket that the one at ``closing`` closes; -1 if there is none.

    Args:
        backwards: the reversed text.
        closing: an index in the text itself.
    """
    expected: list[str] = []
    for bracket in _BRACKET.finditer(backwards, len(backwards) - 1 - closing):
        letter = bracket[0]
        if letter in _OPEN and not (letter == ">" and expected and expected[-1] in "([{"):
            expected.append(_OPEN[letter])
        elif expected and letter == expected[-1]:
            expected.pop()
            if not expected:
                return len(backwards) - bracket.end()
    return -1


def _beginning(text: str, backwards: str, end: int) -> int:
    """The start of the name that ends at ``end``: after the last scope or return type outside brackets."""
    after = 1 + max(text.rfind(each, 0, end) for each in "<>():")
    conversion = _CONVERSION.search(text, after, end)
    if conversion:
        return conversion.start()
    at = end
    while found := _SCOPE_OR_BRACKET.search(backwards, len(backwards) - at):
        closing = len(backwards) - found.end()
        if found[0] not in _OPEN:
            return closing + 1
        at = _opening(backwards, closing)
        if at < 0:
            return closing + 1
    return 0


_LENGTH = re.compile("L?([0-9]{1,9})")


def _mangled_function(name: str) -> tuple[str, str]:
    """The last source name of a mangled nested name, and its arguments unchanged: used without a demangler."""
    at, found = 2, ""
    while at < len(name) and name[at] in "NKVrL":
        at += 1
    if name.startswith("St", at):
        at += 2
    arguments = ""
    while match := _LENGTH.match(name, at):
        start = match.end()
        at = start + int(match[1])
        if at > len(name):
            break
        found = name[start:at]
        if at < len(name) and name[at] == "I":
            arguments = name[at + 1 :]
            break
    return found or name, arguments if found else ""
