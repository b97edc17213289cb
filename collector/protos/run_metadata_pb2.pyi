from collector.protos import activity_pb2 as _activity_pb2
from collector.protos import graph_pb2 as _graph_pb2
from collector.protos import step_stats_pb2 as _step_stats_pb2
from collector.protos import tensor_pb2 as _tensor_pb2
from collector.protos import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CostGraphDef(_message.Message):
    __slots__ = ("node", "cost")
    class Node(_message.Message):
        __slots__ = ("name", "device", "id", "input_info", "output_info", "temporary_memory_size", "persistent_memory_size", "host_temp_memory_size", "device_temp_memory_size", "device_persistent_memory_size", "compute_cost", "compute_time", "memory_time", "is_final", "control_input", "inaccurate")
        class InputInfo(_message.Message):
            __slots__ = ("preceding_node", "preceding_port")
            PRECEDING_NODE_FIELD_NUMBER: _ClassVar[int]
            PRECEDING_PORT_FIELD_NUMBER: _ClassVar[int]
            preceding_node: int
            preceding_port: int
            def __init__(self, preceding_node: _Optional[int] = ..., preceding_port: _Optional[int] = ...) -> None: ...
        class OutputInfo(_message.Message):
            __slots__ = ("size", "alias_input_port", "shape", "dtype")
            SIZE_FIELD_NUMBER: _ClassVar[int]
            ALIAS_INPUT_PORT_FIELD_NUMBER: _ClassVar[int]
            SHAPE_FIELD_NUMBER: _ClassVar[int]
            DTYPE_FIELD_NUMBER: _ClassVar[int]
            size: int
            alias_input_port: int
            shape: _tensor_pb2.TensorShapeProto
            dtype: _types_pb2.DataType
            def __init__(self, size: _Optional[int] = ..., alias_input_port: _Optional[int] = ..., shape: _Optional[_Union[_tensor_pb2.TensorShapeProto, _Mapping]] = ..., dtype: _Optional[_Union[_types_pb2.DataType, str]] = ...) -> None: ...
        NAME_FIELD_NUMBER: _ClassVar[int]
        DEVICE_FIELD_NUMBER: _ClassVar[int]
        ID_FIELD_NUMBER: _ClassVar[int]
        INPUT_INFO_FIELD_NUMBER: _ClassVar[int]
        OUTPUT_INFO_FIELD_NUMBER: _ClassVar[int]
        TEMPORARY_MEMORY_SIZE_FIELD_NUMBER: _ClassVar[int]
        PERSISTENT_MEMORY_SIZE_FIELD_NUMBER: _ClassVar[int]
        HOST_TEMP_MEMORY_SIZE_FIELD_NUMBER: _ClassVar[int]
        DEVICE_TEMP_MEMORY_SIZE_FIELD_NUMBER: _ClassVar[int]
        DEVICE_PERSISTENT_MEMORY_SIZE_FIELD_NUMBER: _ClassVar[int]
        COMPUTE_COST_FIELD_NUMBER: _ClassVar[int]
        COMPUTE_TIME_FIELD_NUMBER: _ClassVar[int]
        MEMORY_TIME_FIELD_NUMBER: _ClassVar[int]
        IS_FINAL_FIELD_NUMBER: _ClassVar[int]
        CONTROL_INPUT_FIELD_NUMBER: _ClassVar[int]
        INACCURATE_FIELD_NUMBER: _ClassVar[int]
        name: str
        device: str
        id: int
        input_info: _containers.RepeatedCompositeFieldContainer[CostGraphDef.Node.InputInfo]
        output_info: _containers.RepeatedCompositeFieldContainer[CostGraphDef.Node.OutputInfo]
        temporary_memory_size: int
        persistent_memory_size: int
        host_temp_memory_size: int
        device_temp_memory_size: int
        device_persistent_memory_size: int
        compute_cost: int
        compute_time: int
        memory_time: int
        is_final: bool
        control_input: _containers.RepeatedScalarFieldContainer[int]
        inaccurate: bool
        def __init__(self, name: _Optional[str] = ..., device: _Optional[str] = ..., id: _Optional[int] = ..., input_info: _Optional[_Iterable[_Union[CostGraphDef.Node.InputInfo, _Mapping]]] = ..., output_info: _Optional[_Iterable[_Union[CostGraphDef.Node.OutputInfo, _Mapping]]] = ..., temporary_memory_size: _Optional[int] = ..., persistent_memory_size: _Optional[int] = ..., host_temp_memory_size: _Optional[int] = ..., device_temp_memory_size: _Optional[int] = ..., device_persistent_memory_size: _Optional[int] = ..., compute_cost: _Optional[int] = ..., compute_time: _Optional[int] = ..., memory_time: _Optional[int] = ..., is_final: bool = ..., control_input: _Optional[_Iterable[int]] = ..., inaccurate: bool = ...) -> None: ...
    class AggregatedCost(_message.Message):
        __slots__ = ("cost", "dimension")
        COST_FIELD_NUMBER: _ClassVar[int]
        DIMENSION_FIELD_NUMBER: _ClassVar[int]
        cost: float
        dimension: str
        def __init__(self, cost: _Optional[float] = ..., dimension: _Optional[str] = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    node: _containers.RepeatedCompositeFieldContainer[CostGraphDef.Node]
    cost: _containers.RepeatedCompositeFieldContainer[CostGraphDef.AggregatedCost]
    def __init__(self, node: _Optional[_Iterable[_Union[CostGraphDef.Node, _Mapping]]] = ..., cost: _Optional[_Iterable[_Union[CostGraphDef.AggregatedCost, _Mapping]]] = ...) -> None: ...

class StackFrame(_message.Message):
    __slots__ = ("file", "line", "function", "first_line")
    FILE_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    FIRST_LINE_FIELD_NUMBER: _ClassVar[int]
    file: str
    line: int
    function: str
    first_line: int
    def __init__(self, file: _Optional[str] = ..., line: _Optional[int] = ..., function: _Optional[str] = ..., first_line: _Optional[int] = ...) -> None: ...

class AnnotationDetails(_message.Message):
    __slots__ = ("path", "op", "flops", "num_bytes", "runs", "inputs", "stack")
    PATH_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    FLOPS_FIELD_NUMBER: _ClassVar[int]
    NUM_BYTES_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    STACK_FIELD_NUMBER: _ClassVar[int]
    path: str
    op: str
    flops: int
    num_bytes: int
    runs: int
    inputs: _containers.RepeatedScalarFieldContainer[str]
    stack: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, path: _Optional[str] = ..., op: _Optional[str] = ..., flops: _Optional[int] = ..., num_bytes: _Optional[int] = ..., runs: _Optional[int] = ..., inputs: _Optional[_Iterable[str]] = ..., stack: _Optional[_Iterable[int]] = ...) -> None: ...

class LossTimes(_message.Message):
    __slots__ = ("figure", "at_nanos")
    FIGURE_FIELD_NUMBER: _ClassVar[int]
    AT_NANOS_FIELD_NUMBER: _ClassVar[int]
    figure: str
    at_nanos: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, figure: _Optional[str] = ..., at_nanos: _Optional[_Iterable[int]] = ...) -> None: ...

class Capture(_message.Message):
    __slots__ = ("clock", "counters", "ledger_counters", "json_environment", "strings", "details", "rows", "other_tables")
    class Clock(_message.Message):
        __slots__ = ("cupti_start_ns", "cupti_stop_ns", "wall_start_ns", "wall_stop_ns", "uncertainty_ns")
        CUPTI_START_NS_FIELD_NUMBER: _ClassVar[int]
        CUPTI_STOP_NS_FIELD_NUMBER: _ClassVar[int]
        WALL_START_NS_FIELD_NUMBER: _ClassVar[int]
        WALL_STOP_NS_FIELD_NUMBER: _ClassVar[int]
        UNCERTAINTY_NS_FIELD_NUMBER: _ClassVar[int]
        cupti_start_ns: int
        cupti_stop_ns: int
        wall_start_ns: int
        wall_stop_ns: int
        uncertainty_ns: int
        def __init__(self, cupti_start_ns: _Optional[int] = ..., cupti_stop_ns: _Optional[int] = ..., wall_start_ns: _Optional[int] = ..., wall_stop_ns: _Optional[int] = ..., uncertainty_ns: _Optional[int] = ...) -> None: ...
    class CountersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class Rows(_message.Message):
        __slots__ = ("kind", "columns")
        class Column(_message.Message):
            __slots__ = ("field", "values")
            FIELD_FIELD_NUMBER: _ClassVar[int]
            VALUES_FIELD_NUMBER: _ClassVar[int]
            field: int
            values: _containers.RepeatedScalarFieldContainer[int]
            def __init__(self, field: _Optional[int] = ..., values: _Optional[_Iterable[int]] = ...) -> None: ...
        KIND_FIELD_NUMBER: _ClassVar[int]
        COLUMNS_FIELD_NUMBER: _ClassVar[int]
        kind: _activity_pb2.Activity.Kind
        columns: _containers.RepeatedCompositeFieldContainer[Capture.Rows.Column]
        def __init__(self, kind: _Optional[_Union[_activity_pb2.Activity.Kind, str]] = ..., columns: _Optional[_Iterable[_Union[Capture.Rows.Column, _Mapping]]] = ...) -> None: ...
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    LEDGER_COUNTERS_FIELD_NUMBER: _ClassVar[int]
    JSON_ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    OTHER_TABLES_FIELD_NUMBER: _ClassVar[int]
    clock: Capture.Clock
    counters: _containers.ScalarMap[str, int]
    ledger_counters: _containers.RepeatedScalarFieldContainer[int]
    json_environment: _containers.RepeatedScalarFieldContainer[str]
    strings: _containers.RepeatedScalarFieldContainer[str]
    details: str
    rows: _containers.RepeatedCompositeFieldContainer[Capture.Rows]
    other_tables: str
    def __init__(self, clock: _Optional[_Union[Capture.Clock, _Mapping]] = ..., counters: _Optional[_Mapping[str, int]] = ..., ledger_counters: _Optional[_Iterable[int]] = ..., json_environment: _Optional[_Iterable[str]] = ..., strings: _Optional[_Iterable[str]] = ..., details: _Optional[str] = ..., rows: _Optional[_Iterable[_Union[Capture.Rows, _Mapping]]] = ..., other_tables: _Optional[str] = ...) -> None: ...

class Provenance(_message.Message):
    __slots__ = ("collector_version", "source", "simulated", "environment", "ledger", "clock_offset_nanos", "window_start_nanos", "window_end_nanos", "annotations", "frames", "losses", "unread", "rank", "world_size", "json_environment")
    class EnvironmentEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LedgerEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class UnreadEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    COLLECTOR_VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    LEDGER_FIELD_NUMBER: _ClassVar[int]
    CLOCK_OFFSET_NANOS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_START_NANOS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_END_NANOS_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    UNREAD_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    JSON_ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    collector_version: str
    source: str
    simulated: bool
    environment: _containers.ScalarMap[str, str]
    ledger: _containers.ScalarMap[str, int]
    clock_offset_nanos: int
    window_start_nanos: int
    window_end_nanos: int
    annotations: _containers.RepeatedCompositeFieldContainer[AnnotationDetails]
    frames: _containers.RepeatedCompositeFieldContainer[StackFrame]
    losses: _containers.RepeatedCompositeFieldContainer[LossTimes]
    unread: _containers.ScalarMap[str, int]
    rank: int
    world_size: int
    json_environment: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, collector_version: _Optional[str] = ..., source: _Optional[str] = ..., simulated: bool = ..., environment: _Optional[_Mapping[str, str]] = ..., ledger: _Optional[_Mapping[str, int]] = ..., clock_offset_nanos: _Optional[int] = ..., window_start_nanos: _Optional[int] = ..., window_end_nanos: _Optional[int] = ..., annotations: _Optional[_Iterable[_Union[AnnotationDetails, _Mapping]]] = ..., frames: _Optional[_Iterable[_Union[StackFrame, _Mapping]]] = ..., losses: _Optional[_Iterable[_Union[LossTimes, _Mapping]]] = ..., unread: _Optional[_Mapping[str, int]] = ..., rank: _Optional[int] = ..., world_size: _Optional[int] = ..., json_environment: _Optional[_Iterable[str]] = ...) -> None: ...

class RunMetadata(_message.Message):
    __slots__ = ("step_stats", "cost_graph", "partition_graphs", "function_graphs", "provenance", "capture")
    class FunctionGraphs(_message.Message):
        __slots__ = ("partition_graphs", "pre_optimization_graph", "post_optimization_graph")
        PARTITION_GRAPHS_FIELD_NUMBER: _ClassVar[int]
        PRE_OPTIMIZATION_GRAPH_FIELD_NUMBER: _ClassVar[int]
        POST_OPTIMIZATION_GRAPH_FIELD_NUMBER: _ClassVar[int]
        partition_graphs: _containers.RepeatedCompositeFieldContainer[_graph_pb2.GraphDef]
        pre_optimization_graph: _graph_pb2.GraphDef
        post_optimization_graph: _graph_pb2.GraphDef
        def __init__(self, partition_graphs: _Optional[_Iterable[_Union[_graph_pb2.GraphDef, _Mapping]]] = ..., pre_optimization_graph: _Optional[_Union[_graph_pb2.GraphDef, _Mapping]] = ..., post_optimization_graph: _Optional[_Union[_graph_pb2.GraphDef, _Mapping]] = ...) -> None: ...
    STEP_STATS_FIELD_NUMBER: _ClassVar[int]
    COST_GRAPH_FIELD_NUMBER: _ClassVar[int]
    PARTITION_GRAPHS_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_GRAPHS_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    CAPTURE_FIELD_NUMBER: _ClassVar[int]
    step_stats: _step_stats_pb2.StepStats
    cost_graph: CostGraphDef
    partition_graphs: _containers.RepeatedCompositeFieldContainer[_graph_pb2.GraphDef]
    function_graphs: _containers.RepeatedCompositeFieldContainer[RunMetadata.FunctionGraphs]
    provenance: Provenance
    capture: Capture
    def __init__(self, step_stats: _Optional[_Union[_step_stats_pb2.StepStats, _Mapping]] = ..., cost_graph: _Optional[_Union[CostGraphDef, _Mapping]] = ..., partition_graphs: _Optional[_Iterable[_Union[_graph_pb2.GraphDef, _Mapping]]] = ..., function_graphs: _Optional[_Iterable[_Union[RunMetadata.FunctionGraphs, _Mapping]]] = ..., provenance: _Optional[_Union[Provenance, _Mapping]] = ..., capture: _Optional[_Union[Capture, _Mapping]] = ...) -> None: ...
