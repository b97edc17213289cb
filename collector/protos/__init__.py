"""TensorFlow's trace messages under our own package name: same field numbers and types, so the bytes are the same.

>>> from collector.protos import RunMetadata, StepStats
"""

from collector.protos.activity_pb2 import Activity
from collector.protos.checkpoint_pb2 import BundleEntryProto, BundleHeaderProto, TensorSliceProto
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
from collector.protos.pprof_pb2 import PprofProfile
from collector.protos.run_metadata_pb2 import (
    AnnotationDetails,
    Capture,
    CostGraphDef,
    LossTimes,
    Provenance,
    RunMetadata,
    StackFrame,
)
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
from collector.protos.tfprof_log_pb2 import (
    CodeDef,
    ExecMemory,
    ExecProfile,
    ExecTime,
    OpLogEntry,
    OpLogProto,
    ProfileNode,
    ProfileProto,
    Tuple,
)
from collector.protos.tfprof_options_pb2 import AdvisorOptionsProto, OptionsProto
from collector.protos.tfprof_output_pb2 import (
    AdviceProto,
    GraphNodeProto,
    MultiGraphNodeProto,
    TFProfTensorProto,
)
from collector.protos.types_pb2 import DataType

__all__ = [
    "Activity",
    "AdviceProto",
    "AdvisorOptionsProto",
    "AllocationDescription",
    "AllocationRecord",
    "AllocatorMemoryUsed",
    "AnnotationDetails",
    "AttrValue",
    "BundleEntryProto",
    "BundleHeaderProto",
    "Capture",
    "CodeDef",
    "CostGraphDef",
    "DataType",
    "DeviceStepStats",
    "ExecMemory",
    "ExecProfile",
    "ExecTime",
    "FunctionDef",
    "FunctionDefLibrary",
    "GraphDef",
    "GraphNodeProto",
    "LossTimes",
    "MemoryStats",
    "MultiGraphNodeProto",
    "NameAttrList",
    "NodeDef",
    "NodeExecStats",
    "NodeOutput",
    "OpDef",
    "OpLogEntry",
    "OpLogProto",
    "OptionsProto",
    "PprofProfile",
    "ProfileNode",
    "ProfileProto",
    "Provenance",
    "RunMetadata",
    "StackFrame",
    "StepStats",
    "TFProfTensorProto",
    "TensorDescription",
    "TensorProto",
    "TensorShapeProto",
    "TensorSliceProto",
    "Tuple",
    "VersionDef",
]
