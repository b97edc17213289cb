"""Our messages equal TensorFlow's on the wire (numbers, types, bytes), and both can be loaded in one process."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from google.protobuf import descriptor_pool, text_format
from google.protobuf.message import Message

from collector import protos
from collector.protos import (
    activity_pb2,
    graph_pb2,
    run_metadata_pb2,
    step_stats_pb2,
    tensor_pb2,
    tfprof_log_pb2,
    types_pb2,
)
from collector.recording.schema import ACTIVITY_FIELDS, ACTIVITY_KINDS, SCHEMA

# TensorFlow's field numbers. One line a message; "*" repeated, "{}" a map, a capital letter a message or enumeration.
WIRE = """
StepStats: dev_stats=1 *DeviceStepStats
DeviceStepStats: device=1 string, node_stats=2 *NodeExecStats, thread_names=3 {}ThreadNamesEntry
NodeExecStats: node_name=1 string, all_start_micros=2 int64, op_start_rel_micros=3 int64, op_end_rel_micros=4 int64,
  all_end_rel_micros=5 int64, memory=6 *AllocatorMemoryUsed, output=7 *NodeOutput, timeline_label=8 string,
  scheduled_micros=9 int64, thread_id=10 uint32, referenced_tensor=11 *AllocationDescription,
  memory_stats=12 MemoryStats, all_start_nanos=13 int64, op_start_rel_nanos=14 int64, op_end_rel_nanos=15 int64,
  all_end_rel_nanos=16 int64, scheduled_nanos=17 int64
NodeOutput: slot=1 int32, tensor_description=3 TensorDescription
AllocatorMemoryUsed: allocator_name=1 string, total_bytes=2 int64, peak_bytes=3 int64, live_bytes=4 int64,
  allocator_bytes_in_use=5 int64, allocation_records=6 *AllocationRecord
AllocationRecord: alloc_micros=1 int64, alloc_bytes=2 int64
MemoryStats: temp_memory_size=1 int64, device_temp_memory_size=2 int64, persistent_memory_size=3 int64,
  device_persistent_memory_size=4 int64, persistent_tensor_alloc_ids=5 *int64,
  device_persistent_tensor_alloc_ids=6 *int64
TensorDescription: dtype=1 DataType, shape=2 TensorShapeProto, allocation_description=4 AllocationDescription
AllocationDescription: requested_bytes=1 int64, allocated_bytes=2 int64, allocator_name=3 string,
  allocation_id=4 int64, has_single_reference=5 bool, ptr=6 uint64
TensorShapeProto: dim=2 *Dim, unknown_rank=3 bool
RunMetadata: step_stats=1 StepStats, cost_graph=2 CostGraphDef, partition_graphs=3 *GraphDef,
  function_graphs=4 *FunctionGraphs
GraphDef: node=1 *NodeDef, library=2 FunctionDefLibrary, version=3 int32, versions=4 VersionDef
NodeDef: name=1 string, op=2 string, input=3 *string, device=4 string, attr=5 {}AttrEntry,
  experimental_debug_info=6 ExperimentalDebugInfo
AttrValue: list=1 ListValue, s=2 bytes, i=3 int64, f=4 float, b=5 bool, type=6 DataType, shape=7 TensorShapeProto,
  tensor=8 TensorProto, placeholder=9 string, func=10 NameAttrList
VersionDef: producer=1 int32, min_consumer=2 int32, bad_consumers=3 *int32
OpLogProto: log_entries=1 *OpLogEntry, id_to_string=2 {}IdToStringEntry
OpLogEntry: name=1 string, float_ops=2 int64, types=3 *string, code_def=4 CodeDef
ProfileProto: nodes=1 {}NodesEntry, has_trace=2 bool, steps=3 *int64, id_to_string=4 {}IdToStringEntry,
  miss_accelerator_stream=5 bool
ProfileNode: name=1 string, inputs=2 {}InputsEntry, outputs=3 {}OutputsEntry, shape=4 *int64, op_types=5 *string,
  canonical_device=6 string, host_device=7 string, float_ops=8 int64, op=9 string, trace=10 CodeDef,
  attrs=11 {}AttrsEntry, execs=12 {}ExecsEntry, id=13 int64, src_output_index=14 {}SrcOutputIndexEntry,
  output_shapes=15 {}OutputShapesEntry, input_shapes=16 {}InputShapesEntry
"""
OURS = {"RunMetadata": {"provenance", "capture"}, "NodeExecStats": {"correlation_id", "activity", "op_end"}}
DATA_TYPES = {
    "INVALID": 0,
    "FLOAT": 1,
    "DOUBLE": 2,
    "INT32": 3,
    "UINT8": 4,
    "INT16": 5,
    "INT8": 6,
    "STRING": 7,
    "COMPLEX64": 8,
    "INT64": 9,
    "BOOL": 10,
    "QINT8": 11,
    "QUINT8": 12,
    "QINT32": 13,
    "BFLOAT16": 14,
    "QINT16": 15,
    "QUINT16": 16,
    "UINT16": 17,
    "COMPLEX128": 18,
    "HALF": 19,
    "RESOURCE": 20,
    "VARIANT": 21,
    "UINT32": 22,
    "UINT64": 23,
    "FLOAT8_E5M2": 24,
    "FLOAT8_E4M3FN": 25,
    "INT4": 29,
    "UINT4": 30,
}
COLUMNS = """
  device_id context_id stream_id name_id grid_x grid_y grid_z block_x block_y block_z registers_per_thread
  dynamic_shared_bytes static_shared_bytes num_bytes start_ns end_ns correlation_id thread_id cluster_x cluster_y
  cluster_z local_bytes_per_thread launch_type graph_id graph_node_id copy_kind src_kind dst_kind is_async
  src_device_id src_context_id dst_device_id dst_context_id value memory_kind domain callback_id process_id
  return_value external_id external_kind depth details_id sync_type event_id overhead_kind object_kind operation
  address pool_type pool_address pool_bytes pool_used_bytes event_sync_id priority
  end_device_id num_nodes source_graph_node_id captured_external_id graph_degree end_thread_id range_kind domain_name_id
  category_name_id color payload_text_id device_name_id thread_name_id op_sequence shapes_text_id
  jit_operation_type jit_entry_type jit_id cache_bytes
"""
COLUMN_NUMBERS = {name: number for number, name in enumerate(COLUMNS.split(), start=2)}
KIND_NUMBERS = {
    "KERNEL": 1,
    "MEMCPY": 2,
    "MEMSET": 3,
    "API_CALL": 4,
    "EXTERNAL_CORRELATION": 5,
    "SYNCHRONIZATION": 6,
    "OVERHEAD": 7,
    "MEMORY_OPERATION": 8,
    "ANNOTATION": 9,
    "GRAPH_LAUNCH": 15,
    "NVTX_RANGE": 16,
}
# What TensorFlow's graphs hold beside what we read: the full type of a node, the handles of an argument. Kept as bytes.
UNREAD = {("NodeDef", 7), ("ArgDef", 7)}
MODULES = (activity_pb2, graph_pb2, run_metadata_pb2, step_stats_pb2, tensor_pb2, tfprof_log_pb2, types_pb2)


def kind_of(table: str) -> str:
    return table.removesuffix("es" if table.endswith("ches") else "s")


def message_class(name: str) -> type[Message]:
    for module in MODULES:
        if hasattr(module, name):
            return getattr(module, name)
    raise LookupError(name)


def wire_lines() -> list[tuple[str, str]]:
    joined = WIRE.replace("\n  ", " ").strip()
    return [tuple(line.split(": ", 1)) for line in joined.splitlines()]


def describe(field) -> str:
    """A field in the notation of WIRE."""
    names = {
        1: "double",
        2: "float",
        3: "int64",
        4: "uint64",
        5: "int32",
        8: "bool",
        9: "string",
        12: "bytes",
        13: "uint32",
    }
    kind = field.message_type or field.enum_type
    repeated = isinstance(field.default_value, list)
    is_map = kind is field.message_type and kind is not None and kind.GetOptions().map_entry
    mark = "{}" if is_map else "*" if repeated else ""
    return f"{field.name}={field.number} {mark}{kind.name if kind else names[field.type]}"


@pytest.mark.parametrize(("name", "fields"), wire_lines())
def test_numbers_and_types_are_tensorflows(name: str, fields: str) -> None:
    descriptor = message_class(name).DESCRIPTOR
    ours = OURS.get(name, set())
    described = {describe(field) for field in descriptor.fields if field.name not in ours}
    assert described == set(fields.split(", "))


def test_what_we_add_lies_far_above_tensorflows_numbers() -> None:
    for name, fields in OURS.items():
        for field in fields:
            assert message_class(name).DESCRIPTOR.fields_by_name[field].number > 100_000


def test_data_types_have_tensorflows_numbers() -> None:
    values = dict(protos.DataType.items())
    assert {name.removeprefix("DT_"): value for name, value in values.items()}.items() >= DATA_TYPES.items()
    references = {name: value for name, value in values.items() if name.endswith("_REF")}
    assert {name.removesuffix("_REF"): value - 100 for name, value in references.items()}.items() <= values.items()
    assert len(values) == 2 * len(references) + 1  # DT_INVALID has none


def test_every_exported_name_is_a_message_or_enumeration_of_our_package() -> None:
    for name in protos.__all__:
        assert getattr(protos, name).DESCRIPTOR.full_name.split(".")[0] == "collector", name


def test_every_column_of_an_activity_is_a_field_of_its_message() -> None:
    """One field a column, whichever table has it, that holds every value of the column."""
    fields = protos.Activity.DESCRIPTOR.fields_by_name
    holders = {
        "i1": "int32",
        "i4": "int32",
        "i8": "int64",
        "u1": "uint32",
        "u2": "uint32",
        "u4": "uint32",
        "u8": "uint64",
    }
    columns = {(name, dtype) for table in ACTIVITY_KINDS for name, dtype in SCHEMA[table].items()}
    assert {describe(fields[name]) for name, _ in columns} == {
        f"{name}={ACTIVITY_FIELDS[name]} {holders[dtype]}" for name, dtype in columns
    }
    assert set(fields) == {"kind"} | {name for name, _ in columns}
    kinds = {kind_of(table).upper(): number for table, number in ACTIVITY_KINDS.items()}
    assert dict(protos.Activity.Kind.items()) == {"UNKNOWN": 0} | kinds


def test_columns_keep_their_numbers() -> None:
    """What is in files stays readable: a number that was given once means that column for ever."""
    numbers = {field.name: field.number for field in protos.Activity.DESCRIPTOR.fields}
    assert numbers.items() >= COLUMN_NUMBERS.items()
    assert dict(protos.Activity.Kind.items()).items() >= KIND_NUMBERS.items()


# --- TensorFlow's own files

CLASSES = {
    "run_meta": run_metadata_pb2.RunMetadata,
    "graph": graph_pb2.GraphDef,
    "op_log": tfprof_log_pb2.OpLogProto,
    "profile_proto": tfprof_log_pb2.ProfileProto,
}


def golden_files(shared: Path) -> Iterator[tuple[Path, type[Message]]]:
    for path in sorted((shared / "data/tf/inputs").rglob("*.pb*")):
        if "pbtxt" in path.name:
            continue
        known = [cls for start, cls in CLASSES.items() if path.name.startswith(start)]
        yield path, known[0] if known else step_stats_pb2.StepStats


def content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def unknown_numbers(message: Message) -> Iterator[tuple[str, int]]:
    """(message, field number) of every field in the bytes that our descriptors do not name, at any depth."""
    try:
        from google.protobuf.unknown_fields import UnknownFieldSet

        unread = UnknownFieldSet(message)
    except ImportError:  # protobuf 4.21
        unread = message.UnknownFields()
    yield from ((message.DESCRIPTOR.name, field.field_number) for field in unread)
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            children = value.values() if field.message_type.fields_by_name["value"].message_type else ()
        else:
            children = value if isinstance(field.default_value, list) else (value,)
        for child in children:
            yield from unknown_numbers(child)


@pytest.mark.slow
def test_tensorflows_files_come_back_byte_for_byte(shared: Path) -> None:
    seen = set()
    for path, cls in golden_files(shared):
        data = content(path)
        message = cls.FromString(data)
        assert message.SerializeToString(deterministic=True) == data, path
        assert set(unknown_numbers(message)) <= UNREAD, path
        seen.add(cls)
    assert seen == {*CLASSES.values(), step_stats_pb2.StepStats}


@pytest.mark.medium
def test_field_names_are_tensorflows(shared: Path) -> None:
    """Its text form spells the names; what it says must be what the binary form says."""
    for path in sorted((shared / "data/tf/inputs").rglob("graph.pbtxt*")):
        named = text_format.Parse(content(path).decode(), graph_pb2.GraphDef(), allow_unknown_field=True)
        numbered = graph_pb2.GraphDef.FromString(content(path.with_name(path.name.replace("pbtxt", "pb"))))
        numbered.DiscardUnknownFields()
        assert named == numbered, path


# --- living beside TensorFlow, and being generated

BESIDE = """
from google.protobuf import descriptor_pool, message_factory

def ours():
    from collector.protos import run_metadata_pb2
    return run_metadata_pb2.RunMetadata

def theirs():
    '''TensorFlow's files as its own package registers them: same shapes, its paths, its package name.'''
    pool = descriptor_pool.Default()
    for data in FILES:
        pool.AddSerializedFile(data)
    descriptor = pool.FindMessageTypeByName("tensorflow.RunMetadata")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)

classes = [FIRST(), SECOND()]
message = classes[0]()
device = message.step_stats.dev_stats.add(device="/gpu:0/stream:7", thread_names={7: "seven"})
device.node_stats.add(node_name="conv:sgemm", all_start_micros=1, all_end_rel_micros=2)
other = classes[1].FromString(message.SerializeToString())
assert other.step_stats.dev_stats[0].node_stats[0].node_name == "conv:sgemm"
assert other.SerializeToString() == message.SerializeToString()
assert {cls.DESCRIPTOR.full_name for cls in classes} == {"collector.RunMetadata", "tensorflow.RunMetadata"}
"""


def as_tensorflow() -> list[bytes]:
    """Our files under TensorFlow's paths and package, in the order they import each other."""
    from google.protobuf import descriptor_pb2

    found = []
    for module in (types_pb2, tensor_pb2, graph_pb2, activity_pb2, step_stats_pb2, run_metadata_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        text = text_format.MessageToString(file)
        text = text.replace('"collector/protos/', '"tensorflow/core/framework/').replace(
            '".collector.', '".tensorflow.'
        )
        renamed = text_format.Parse(text.replace('package: "collector"', 'package: "tensorflow"'), type(file)())
        found.append(renamed.SerializeToString())
    return found


@pytest.mark.medium
@pytest.mark.parametrize("order", [("ours", "theirs"), ("theirs", "ours")])
def test_lives_in_one_process_with_tensorflows_messages(order: tuple[str, str], root: Path) -> None:
    script = BESIDE.replace("FILES", repr(as_tensorflow())).replace("FIRST", order[0]).replace("SECOND", order[1])
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_nothing_is_registered_under_tensorflows_name() -> None:
    pool = descriptor_pool.Default()
    for module in MODULES:
        assert pool.FindFileByName(module.DESCRIPTOR.name).package == "collector"
        assert module.DESCRIPTOR.name.startswith("collector/protos/")


def generator(root: Path) -> Path:
    """An interpreter with the pinned generator: `make` builds its environment on first use."""
    interpreter = ".venv-protos/bin/python"
    done = subprocess.run(
        ["make", "-s", ".venv-protos/.installed"], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-3:]
        pytest.skip(f"GENERATED MESSAGES NOT COMPARED WITH protos/*.proto: grpcio-tools cannot be installed: {last}")
    return root / interpreter


@pytest.mark.slow
def test_generated_files_are_what_the_make_target_writes(root: Path, tmp_path: Path) -> None:
    subprocess.run([generator(root), root / "scripts/generate_protos.py", tmp_path], cwd=root, check=True)
    committed = {path.name: path.read_text() for path in (root / "collector/protos").glob("*_pb2.py*")}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == committed


@pytest.mark.parametrize("module", MODULES)
def test_generated_files_carry_no_version_stamp(module: ModuleType) -> None:
    """A stamp makes every runtime older than the generator refuse the file."""
    assert "ValidateProtobufRuntimeVersion" not in Path(module.__file__).read_text()
