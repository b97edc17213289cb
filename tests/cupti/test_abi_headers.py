"""`native/cupti/abi.h`, held field by field against NVIDIA's own headers of every version at which a record grew.

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
    "MemcpyKind": "CUPTI_ACTIVITY_MEMCPY_KIND_",
    "MemoryKind": "CUPTI_ACTIVITY_MEMORY_KIND_",
    "MemoryOperationType": "CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_",
    "MemoryPoolType": "CUPTI_ACTIVITY_MEMORY_POOL_TYPE_",
    "SynchronizationType": "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_",
    "ObjectKind": "CUPTI_ACTIVITY_OBJECT_",
    "ExternalCorrelationKind": "CUPTI_EXTERNAL_CORRELATION_KIND_",
    "CallbackDomain": "CUPTI_CB_DOMAIN_",
}
STRUCT_KINDS = {
    "Memcpy": "kMemcpy",
    "MemcpyPtoP": "kMemcpy2",
    "Memset": "kMemset",
    "Kernel": "kConcurrentKernel",
    "Api": "kRuntime",
    "Overhead": "kOverhead",
    "Synchronization": "kSynchronization",
    "ExternalCorrelation": "kExternalCorrelation",
    "Memory": "kMemory2",
}
# Where CUPTI nests structs and unions and we lay the words out flat.
RENAMED_FIELDS = {
    "Overhead.objectDeviceOrProcess": ["objectId.dcs.deviceId", "objectId.pt.processId"],
    "Overhead.objectContextOrThread": ["objectId.dcs.contextId", "objectId.pt.threadId"],
    "Overhead.objectStream": ["objectId.dcs.streamId"],
    "Memory.poolType": ["memoryPoolConfig.memoryPoolType"],
    "Memory.poolAddress": ["memoryPoolConfig.address"],
    "Memory.poolReleaseThreshold": ["memoryPoolConfig.releaseThreshold"],
    "Memory.poolSizeOrProcess": ["memoryPoolConfig.pool.size", "memoryPoolConfig.pool.processId"],
    "Memory.poolUtilizedSize": ["memoryPoolConfig.utilizedSize"],
}
VERSIONS = ["12.0", "12.3", "12.4", "12.6", "12.8", "12.9", "13.0", "13.1", "13.3", "13.4", "13.5"]
NEWEST = VERSIONS[-1]


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
    optional: list[tuple[str, int, str, str, int]]
    """Kind, since CUDA version, struct, field, bytes."""


def version_number(cuda: str) -> int:
    major, minor = cuda.split(".")
    return int(major) * 1000 + int(minor) * 10


def parse(text: str) -> Header:
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
    optional = re.findall(r"\{ActivityKind::(k\w+), (\d+), offsetof\((\w+), (\w+)\), (\d+)\}", text)
    return Header(
        enums,
        fields,
        [(kind, int(since), int(num_bytes)) for kind, since, num_bytes in layouts],
        [(kind, int(since), struct, field, int(num_bytes)) for kind, since, struct, field, num_bytes in optional],
    )


def cupti_constant(enum: str, entry: str) -> str:
    """`ActivityKind.kConcurrentKernel` -> `CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL`."""
    if (enum, entry) == ("Result", "kSuccess"):
        return "CUPTI_SUCCESS"
    name = entry.removeprefix("k")
    if not re.fullmatch(r"[HDAP]to[HDAP]", name):  # CUPTI writes HTOD as one word
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return ENUM_PREFIXES[enum] + name.upper()


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
        for entry, value in entries.items():
            constant = cupti_constant(enum, entry)
            if cuda == NEWEST or re.search(rf"\b{constant}\b", known):  # older versions lack what was appended later
                lines.append(f'static_assert({constant} == {value}, "{enum}::{entry}");')
    for kind, since, num_bytes in header.layouts:
        later = [row_since for row_kind, row_since, _ in header.layouts if row_kind == kind and row_since > since]
        if since <= version < min(later, default=10**9):
            theirs = structs[cupti_constant("ActivityKind", kind)]
            lines.append(f'static_assert(sizeof({theirs}) == {num_bytes}, "kLayouts: {kind}");')
    for struct, field, since in header.fields:
        theirs = structs[cupti_constant("ActivityKind", STRUCT_KINDS[struct])]
        ours = f"ours::{struct}"
        for name in RENAMED_FIELDS.get(f"{struct}.{field}", [field]):
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
def header(root: Path) -> Header:
    return parse((root / "native/cupti/abi.h").read_text())


def test_header_is_understood_whole(header: Header, root: Path) -> None:
    text = (root / "native/cupti/abi.h").read_text()
    assert set(header.enums) == set(re.findall(r"enum class (\w+)", text)) == set(ENUM_PREFIXES)
    assert {field.struct for field in header.fields} == set(STRUCT_KINDS)
    assert sum(map(len, header.enums.values())) == len(re.findall(r"^  k\w+ = \d+,$", text, re.MULTILINE))
    assert len(header.layouts) + len(header.optional) == len(re.findall(r"^    \{ActivityKind::", text, re.MULTILINE))


def test_versions_cover_every_row_and_every_wheel(header: Header, load_script) -> None:
    """Each version at which a record grew or a field appeared is compiled, and the version before it."""
    numbers = [version_number(cuda) for cuda in VERSIONS]
    assert {since for _, since, _ in header.layouts} | {since for _, since, *_ in header.optional} <= set(numbers)
    assert list(load_script("cuda_wheels").RELEASES) == VERSIONS


def test_optional_fields_are_those_marked_since(header: Header) -> None:
    later = [field for field in header.fields if field.since > 12000]
    marked = {(STRUCT_KINDS[field.struct], field.since, field.struct, field.name) for field in later}
    assert {row[:4] for row in header.optional} == marked
    assert len(header.optional) == len(marked)


@pytest.mark.parametrize("cuda", [*(pytest.param(cuda, marks=pytest.mark.slow) for cuda in VERSIONS[:-1]), NEWEST])
def test_header_matches_nvidias(cuda: str, header: Header, root: Path, tmp_path: Path, cuda_wheels: ModuleType) -> None:
    includes = cuda_wheels.include_folders(cuda)
    lines = assertions(header, cuda, cuda_wheels)
    lines += [
        f"static_assert(sizeof(ours::{struct}::{field}) == {num_bytes});"
        for _, _, struct, field, num_bytes in header.optional
    ]
    done = compile_lines(lines, tmp_path, root / "native", includes)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ("kMemcpy = 1,", "kMemcpy = 2,", "ActivityKind::kMemcpy"),
        ("{ActivityKind::kMemset, 13040, 104}", "{ActivityKind::kMemset, 13040, 88}", "kLayouts: kMemset"),
        ("int32_t gridX;\n  int32_t gridY;", "int32_t gridY;\n  int32_t gridX;", "Kernel.gridX lies elsewhere"),
        ("int32_t priority;", "int64_t priority;", "Kernel.priority has another width"),
        ("int32_t blockZ;", "uint32_t blockZ;", "Kernel.blockZ has another sign"),
        (
            "int32_t priority;  // since 13.1",
            "int32_t priority;  // since 13.9",
            "Kernel.priority is older than we say",
        ),
    ],
)
def test_a_wrong_header_is_caught(
    right: str, wrong: str, complaint: str, root: Path, tmp_path: Path, cuda_wheels: ModuleType
) -> None:
    text = (root / "native/cupti/abi.h").read_text()
    assert right in text
    changed = tmp_path / "cupti/abi.h"
    changed.parent.mkdir()
    changed.write_text(text.replace(right, wrong))
    includes = cuda_wheels.include_folders(NEWEST)
    done = compile_lines(assertions(parse(changed.read_text()), NEWEST, cuda_wheels), tmp_path, tmp_path, includes)
    assert done.returncode != 0
    assert complaint in done.stderr
