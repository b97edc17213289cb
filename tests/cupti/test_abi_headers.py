"""Our records and enumerations, held field by field against NVIDIA's headers of every version at which a record grew.

Our names are CUPTI's own, so the assertions are derived from our header and compiled with theirs. Which struct a
record kind has in a version is taken from their comment on the kind.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

ENUM_PREFIXES = {
    "Result": "CUPTI_ERROR_",
    "ActivityKind": "CUPTI_ACTIVITY_KIND_",
    "Attribute": "CUPTI_ACTIVITY_ATTR_",
    "ResourceCallback": "CUPTI_CBID_RESOURCE_",
}
VERSIONS = [
    "12.0",
    "12.2",
    "12.3",
    "12.4",
    "12.5",
    "12.6",
    "12.8",
    "12.9",
    "13.0",
    "13.1",
    "13.2",
    "13.3",
    "13.4",
    "13.5",
]
NEWEST = VERSIONS[-1]
HEADERS = ["native/cupti/abi.h", "native/kinds/generated/kinds.h"]


class Field(NamedTuple):
    struct: str
    name: str
    since: int
    """CUDA version as in kLayouts (12040 = 12.4) from which the field exists."""


class Header(NamedTuple):
    enums: dict[str, dict[str, int]]
    fields: list[Field]
    layouts: list[tuple[str, int, int]]
    """Kind, since CUDA version, bytes."""
    prefixes: dict[str, str]
    """Enumeration -> the prefix of CUPTI's names."""
    kinds: dict[str, list[str]]
    """Struct -> the kinds that it lays out, as CUPTI names them."""
    theirs: dict[str, list[str]]
    """Struct.field -> what CUPTI calls it, where it nests structs and unions and we lay the words out flat."""


def version_number(cuda: str) -> int:
    major, minor = cuda.split(".")
    return int(major) * 1000 + int(minor) * 10


CALLBACK_STRUCTS = {
    "ApiCallData": "CUpti_CallbackData",
    "ResourceData": "CUpti_ResourceData",
    "GraphData": "CUpti_GraphData",
}
"""Structs of cupti_callbacks.h, which are not records, and CUPTI's names for them."""

THEIRS = {"ResourceData.stream": ["resourceHandle.stream"]}
"""A member of one of them, and what CUPTI calls it."""


def parse(text: str, described: ModuleType) -> Header:
    enums = {
        name: {entry: int(value) for entry, value in re.findall(r"(k\w+) = (\d+)", body)}
        for name, body in re.findall(r"enum class (\w+) : \w+ \{(.*?)\};", text, re.DOTALL)
    }
    fields = []
    for struct, body in re.findall(r"struct (\w+) \{(.*?)\};\nstatic_assert", text, re.DOTALL):
        for line in body.strip().splitlines():
            match = re.fullmatch(r"\s*[\w\s*]*?[\s*](\w+)(\[\d+\])?;(?:\s+// since (\d+\.\d+))?", line)
            assert match, f"not understood in struct {struct}: {line}"
            if not match[1].startswith("reserved"):
                fields.append(Field(struct, match[1], version_number(match[3] or "12.0")))
    layouts = re.findall(r"\{ActivityKind::(k\w+), (\d+), (\d+)\}", text)
    kinds = described.read()
    structs = kinds.structs
    theirs: dict[str, list[str]] = dict(THEIRS)
    for struct, (_, records) in structs.items():
        for field in records[0].fields:
            theirs.setdefault(f"{struct}.{records[0].member(field)}", []).append(field.name)
    return Header(
        enums,
        fields,
        [(kind, int(since), int(num_bytes)) for kind, since, num_bytes in layouts],
        ENUM_PREFIXES | {name: enum["prefix"] for name, enum in kinds.enums.items()},
        {struct: [record.kind for record in records] for struct, (_, records) in structs.items()},
        theirs,
    )


def cupti_constant(prefixes: dict[str, str], enum: str, entry: str) -> str:
    """`ActivityKind.kConcurrentKernel` -> `CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL`."""
    if (enum, entry) == ("Result", "kSuccess"):
        return "CUPTI_SUCCESS"
    name = entry.removeprefix("k")
    if not re.fullmatch(r"[HDAP]to[HDAP]", name):  # CUPTI writes HTOD as one word
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    if enum == "ResourceCallback":
        name = re.sub(r"^Graph_(?=Node(?!_Updated|_Set_Params)|Exec)", "Graph", name)  # CUPTI joins the words but once
    return prefixes[enum] + name.upper()


PRELUDE = """\
#include <cuda.h>
#include <cupti.h>
#include <cstddef>
#include <type_traits>
#include "cupti/abi.h"
namespace ours = collector::cupti;
template <typename Ours, typename Theirs>
constexpr bool same_sign() {
  if constexpr (std::is_integral_v<Ours> && std::is_integral_v<Theirs>) {
    return std::is_signed_v<Ours> == std::is_signed_v<Theirs>;
  } else {
    return true;  // an enumeration, a union, a pointer: its size is what matters
  }
}
"""


def assertions(header: Header, cuda: str, wheels: ModuleType) -> list[str]:
    """Lines of C++ that compile only if our header tells the truth about this version's."""
    version = version_number(cuda)
    include = wheels.include_folders(cuda)[0]
    structs = wheels.documented_structs(include)
    known = "".join(path.read_text(errors="replace") for path in sorted(include.glob("cupti*.h")))
    lines = []
    for enum, entries in header.enums.items():
        for entry, value in entries.items() if header.prefixes[enum] else ():  # without prefix: ours, not CUPTI's
            constant = cupti_constant(header.prefixes, enum, entry)
            if cuda == NEWEST or re.search(rf"\b{constant}\b", known):  # older versions lack what was appended later
                lines.append(f'static_assert({constant} == {value}, "{enum}::{entry}");')
    for kind, since, num_bytes in header.layouts:
        later = [row_since for row_kind, row_since, _ in header.layouts if row_kind == kind and row_since > since]
        if since <= version < min(later, default=10**9):
            theirs = structs[cupti_constant(header.prefixes, "ActivityKind", kind)]
            lines.append(f'static_assert(sizeof({theirs}) == {num_bytes}, "kLayouts: {kind}");')
    for struct, field, since in header.fields:
        theirs = CALLBACK_STRUCTS.get(struct) or structs[f"CUPTI_ACTIVITY_KIND_{header.kinds[struct][0]}"]
        ours = f"ours::{struct}"
        for name in header.theirs.get(f"{struct}.{field}", [field]):
            if version < since:
                lines += [
                    f"template <typename T, typename = void> struct Has{struct}{field} : std::false_type {{}};",
                    f"template <typename T> struct Has{struct}{field}<T, std::void_t<decltype(T::{name})>> "
                    ": std::true_type {};",
                    f'static_assert(!Has{struct}{field}<{theirs}>::value, "{struct}.{field} is older than we say");',
                ]
                continue
            member = f"(({theirs}*)nullptr)->{name}"
            same_place = f"offsetof({ours}, {field}) == offsetof({theirs}, {name})"
            same_width = f"sizeof({ours}::{field}) == sizeof({member})"
            same_sign = f"same_sign<decltype({ours}::{field}), std::remove_reference_t<decltype({member})>>()"
            lines += [
                f'static_assert({same_place}, "{struct}.{field} lies elsewhere");',
                f'static_assert({same_width}, "{struct}.{field} has another width");',
                f'static_assert({same_sign}, "{struct}.{field} has another sign");',
            ]
    return lines


def compile_lines(lines: list[str], folder: Path, native: Path, includes: list[Path]) -> subprocess.CompletedProcess:
    source = folder / "abi_check.cpp"
    source.write_text(PRELUDE + "\n".join(lines) + "\n")
    command = ["g++", "-std=c++17", "-fsyntax-only", "-Wno-invalid-offsetof", "-I", str(native)]
    for include in includes:
        command += ["-isystem", str(include)]
    # A bare environment: no CPATH or CUDA_HOME may smuggle an installed toolkit in.
    bare = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
    return subprocess.run([*command, str(source)], env=bare, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def described(load_script) -> ModuleType:
    """The reader of the description that the structs are generated from."""
    pytest.importorskip("tomllib", reason="the description of kinds is read with Python 3.11")
    return load_script("generate_kinds")


@pytest.fixture(scope="module")
def text(root: Path) -> str:
    return "".join((root / header).read_text() for header in HEADERS)


@pytest.fixture(scope="module")
def header(text: str, described: ModuleType) -> Header:
    return parse(text, described)


def test_header_is_understood_whole(header: Header, text: str) -> None:
    assert set(header.enums) == set(re.findall(r"enum class (\w+)", text)) == set(header.prefixes)
    assert {field.struct for field in header.fields} == {*header.kinds, *CALLBACK_STRUCTS}
    assert sum(map(len, header.enums.values())) == len(re.findall(r"^  k\w+ = \d+,(?: +//.*)?$", text, re.MULTILINE))
    assert len(header.layouts) == len(re.findall(r"^    \{ActivityKind::", text, re.MULTILINE))


def test_versions_cover_every_row_and_every_wheel(header: Header, load_script) -> None:
    """Each version at which a record grew or a field appeared is compiled, and the version before it."""
    numbers = [version_number(cuda) for cuda in VERSIONS]
    assert {since for _, since, _ in header.layouts} | {field.since for field in header.fields} <= set(numbers)
    assert list(load_script("cuda_wheels").RELEASES) == VERSIONS


def test_fields_are_marked_since_as_they_are_described(header: Header, described: ModuleType) -> None:
    """Which of them the decoder asks for in which version is held by test_kinds."""
    marked = {
        (field.struct, field.name): field.since for field in header.fields if field.struct not in CALLBACK_STRUCTS
    }
    assert marked == {
        (struct, member.member): version_number(member.since)
        for struct, (_, records) in described.read().structs.items()
        for member in [described.Field(0, "u32", "kind"), *records[0].members.values()]
    }
    assert len(set(marked.values())) > 5


@pytest.mark.medium
@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ("kMemcpy = 1,", "kMemcpy = 2,", "ActivityKind::kMemcpy"),
        ("{ActivityKind::kMemset, 13040, 104}", "{ActivityKind::kMemset, 13040, 88}", "kLayouts: kMemset"),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                ("int32_t gridX;\n  int32_t gridY;", "int32_t gridY;\n  int32_t gridX;", "Kernel.gridX lies elsewhere"),
                ("int32_t priority;", "int64_t priority;", "Kernel.priority has another width"),
                ("int32_t blockZ;", "uint32_t blockZ;", "Kernel.blockZ has another sign"),
                (
                    "int32_t priority;  // since 13.1",
                    "int32_t priority;  // since 13.9",
                    "Kernel.priority is older than we say",
                ),
            )
        ),
    ],
)
def test_a_wrong_header_is_caught(
    right: str,
    wrong: str,
    complaint: str,
    root: Path,
    text: str,
    described: ModuleType,
    tmp_path: Path,
    cuda_wheels: ModuleType,
) -> None:
    assert right in text
    for name in (*HEADERS, "native/kinds/tables.h"):
        changed = tmp_path / name
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.write_text((root / name).read_text().replace(right, wrong))
    includes = cuda_wheels.include_folders(NEWEST)
    header = parse(text.replace(right, wrong), described)
    done = compile_lines(assertions(header, NEWEST, cuda_wheels), tmp_path, tmp_path / "native", includes)
    assert done.returncode != 0
    assert complaint in done.stderr


SAME_SHAPE = """\
#include "cupti/cupti_functions.h"
template <typename R, typename... A, typename S, typename... B>
constexpr bool same_shape(R (*)(A...), S (*)(B...));
template <typename Ours, typename Theirs>
constexpr bool same_kind() {
  if constexpr (std::is_function_v<std::remove_pointer_t<Ours>> && std::is_function_v<std::remove_pointer_t<Theirs>>) {
    return same_shape(Ours{}, Theirs{});
  } else {
    return sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;
  }
}
template <typename A>
struct Size { static constexpr size_t value = sizeof(A); };
template <>
struct Size<void> { static constexpr size_t value = 0; };
template <typename R, typename... A, typename S, typename... B>
constexpr bool same_shape(R (*)(A...), S (*)(B...)) {
  if constexpr (sizeof...(A) == sizeof...(B)) {
    return Size<R>::value == Size<S>::value && (same_kind<A, B>() && ...);
  } else {
    return false;
  }
}
"""
"""Whether two functions take and return values of the same sizes, pointers where the other takes pointers."""

SUBSCRIBER_PARAMS = {
    "struct_size": "structSize",
    "subscriber_name": "subscriberName",
    "holder_name": "oldSubscriberName",
    "holder_name_bytes": "oldSubscriberSize",
    "allow_multiple": "allowMultipleSubscribers",
}
"""The members of the argument of cuptiSubscribe_v2, and CUPTI's names for them."""


def function_assertions(text: str, known: str) -> list[str]:
    lines = []
    for name in re.findall(r"\(\*(\w+)\)\(.*\) = nullptr;", text):
        if re.search(rf"\bcupti{name}\s*\(", known):
            shapes = f"decltype(ours::CuptiFunctions::{name}){{}}, decltype(&cupti{name}){{}}"
            lines.append(f'static_assert(same_shape({shapes}), "cupti{name} has another signature");')
    for ours, theirs in SUBSCRIBER_PARAMS.items():
        if "CUpti_SubscriberParams;" in known and re.search(rf"\b{theirs};", known):
            place = f"offsetof(ours::SubscriberParams, {ours}) == offsetof(CUpti_SubscriberParams, {theirs})"
            lines.append(f'static_assert({place}, "SubscriberParams.{ours} lies elsewhere");')
    return lines


@pytest.mark.medium
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("ActivityEnable_v2)(void*, ActivityKind, void*)", "ActivityEnable_v2)(void*, ActivityKind)"),
        ("ActivityFlushAll)(uint32_t)", "ActivityFlushAll)(uint64_t)"),
        ("size_t valid, const void* info)", "size_t valid)"),
        ("char* holder_name;", "char* added; char* holder_name;"),
    ],
)
def test_a_wrong_signature_does_not_compile(
    right: str, wrong: str, root: Path, tmp_path: Path, cuda_wheels: ModuleType
) -> None:
    text = (root / "native/cupti/cupti_functions.h").read_text()
    assert text.count(right) == 1
    includes = cuda_wheels.include_folders(NEWEST)
    known = "".join(path.read_text(errors="replace") for path in sorted(includes[0].glob("cupti*.h")))
    (tmp_path / "cupti").mkdir()
    (tmp_path / "cupti/cupti_functions.h").write_text(text.replace(right, wrong))
    (tmp_path / "cupti/abi.h").write_text((root / "native/cupti/abi.h").read_text())
    done = compile_lines(
        [SAME_SHAPE, *function_assertions(text, known)], tmp_path, tmp_path, [*includes, root / "native"]
    )
    assert done.returncode != 0
    assert "has another signature" in done.stderr or "lies elsewhere" in done.stderr


NODE_PARAMS = ("CUgraphNodeParams", "cudaGraphNodeParams")


def graph_update_assertions(text: str, cuda: str, include: Path) -> list[str]:
    """Lines about the numbers and arguments of the calls that update graphs."""
    known = "".join(path.read_text(errors="replace") for path in sorted(include.glob("*cbid.h")))
    calls = re.findall(r"\{CallbackDomain::k(\w+)Api, (\d+), GraphUpdateTarget::k(\w+)\}, +// (\w+)", text)
    assert len(calls) == 7
    lines = ['#include "cupti/graph_update_calls.h"']
    for domain, number, target, name in calls:
        constant = f"CUPTI_{domain.upper()}_TRACE_CBID_{name}"
        if not re.search(rf"\b{constant}\b", known):
            assert cuda != NEWEST, constant
            continue
        lines.append(f'static_assert({constant} == {number}, "the number of {name}");')
        second = "hGraph" if target == "Graph" else "hNode" if domain == "Driver" else "node"
        members = {"graphExec": "hGraphExec", "graphOrNode": second}
        if target == "Node" and domain == "Runtime":
            members["graphExec"] = "graphExec"
        if target != "Graph":
            members["graphOrContent"] = "childGraph" if target == "ChildGraph" else "nodeParams"
        for ours, theirs in members.items():
            place = f"offsetof(ours::GraphUpdateParams, {ours}) == offsetof({name}_params, {theirs})"
            lines.append(f'static_assert({place}, "{name}.{theirs} lies elsewhere");')
        for params in NODE_PARAMS if target == "Node" else ():
            same_type = f"offsetof(ours::GraphNodeParams, type) == offsetof({params}, type)"
            same_graph = f"offsetof(ours::GraphNodeParams, graph) == offsetof({params}, graph.graph)"
            lines.append(f'static_assert({same_type} && {same_graph}, "{params} has other members");')
    lines.append('static_assert(ours::GraphNodeParams::kChildGraph == CU_GRAPH_NODE_TYPE_GRAPH, "a child graph");')
    return lines


@pytest.mark.medium
@pytest.mark.parametrize("cuda", [*(pytest.param(cuda, marks=pytest.mark.slow) for cuda in VERSIONS[:-1]), NEWEST])
def test_records_functions_and_calls_are_nvidias(
    cuda: str, header: Header, root: Path, tmp_path: Path, cuda_wheels: ModuleType
) -> None:
    """Of each version in one file, as its headers take the compiler most of the time."""
    includes = cuda_wheels.include_folders(cuda)
    functions = (root / "native/cupti/cupti_functions.h").read_text()
    known = "".join(path.read_text(errors="replace") for path in sorted(includes[0].glob("cupti*.h")))
    signatures = function_assertions(functions, known)
    if cuda == NEWEST:
        assert len(signatures) == len(re.findall(r" = nullptr;", functions)) + len(SUBSCRIBER_PARAMS)
    updates = graph_update_assertions((root / "native/cupti/graph_update_calls.h").read_text(), cuda, includes[0])
    lines = [*assertions(header, cuda, cuda_wheels), SAME_SHAPE, *signatures, *updates]
    done = compile_lines(lines, tmp_path, root / "native", includes)
    assert done.returncode == 0, done.stderr
