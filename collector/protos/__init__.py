"""TensorFlow's trace messages under our own package name: same field numbers and types, so the bytes are the same.

>>> from collector.protos import RunMetadata, StepStats
"""

from collector.protos.graph_pb2 import (
    AttrValue,
    FunctionDef,
    FunctionDefLibrary,
    GraphDef,
    NameAttrList,
    NodeDef,
    OpDef,
    VersionDef,
)
from collector.protos.run_metadata_pb2 import CostGraphDef, Provenance, RunMetadata
from collector.protos.step_stats_pb2 import (
    AllocationRecord,
    AllocatorMemoryUsed,
    DeviceStepStats,
    MemoryStats,
    NodeExecStats,
    NodeOutput,
    StepStats,
)
from collector.protos.tensor_pb2 import (
    AllocationDescription,
    TensorDescription,
    TensorProto,
    TensorShapeProto,
)
from collector.protos.types_pb2 import DataType

__all__ = [
    "AllocationDescription",
    "AllocationRecord",
    "AllocatorMemoryUsed",
    "AttrValue",
    "CostGraphDef",
    "DataType",
    "DeviceStepStats",
    "FunctionDef",
    "FunctionDefLibrary",
    "GraphDef",
    "MemoryStats",
    "NameAttrList",
    "NodeDef",
    "NodeExecStats",
    "NodeOutput",
    "OpDef",
    "Provenance",
    "RunMetadata",
    "StepStats",
    "TensorDescription",
    "TensorProto",
    "TensorShapeProto",
    "VersionDef",
]
