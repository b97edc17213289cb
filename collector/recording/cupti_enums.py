"""CUPTI's enumerations, by the numbers that its C interface fixes."""

from __future__ import annotations

COPY_KINDS = ("<unknown>", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
"""Names of ``CUpti_ActivityMemcpyKind``, as TensorFlow writes them."""
MEMORY_KINDS = ("Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "DeviceStatic", "ManagedStatic")
"""Names of ``CUpti_ActivityMemoryKind``."""
LAUNCH_TYPES = ("regular", "cooperative", "cooperative multi-device")
"""Names of ``CUpti_ActivityLaunchType``."""
DEVICE_MEMORY = (3, 4, 5)
"""Memory kinds that a program takes from a device and gives back; not a module's variables."""
ALLOCATION, RELEASE = 1, 2
"""``CUpti_ActivityMemoryOperationType``."""
MEMORY_OPERATIONS = {0: "Memory Operation", ALLOCATION: "Allocation", RELEASE: "Release"}
"""Names of the same; that of 0 is also the name of types that a newer CUPTI added."""
SYNC_TYPES = {
    0: "Synchronize",
    1: "Event Synchronize",
    2: "Stream Wait Event",
    3: "Stream Synchronize",
    4: "Context Synchronize",
}
"""Names of ``CUpti_ActivitySynchronizationType``; that of 0 is also the name of types that a newer CUPTI added."""
OVERHEAD_KINDS = {
    0: "Overhead",
    1: "Driver Compiler",
    1 << 16: "Buffer Flush",
    2 << 16: "Instrumentation",
    3 << 16: "Resource",
    4 << 16: "Runtime Triggered Module Loading",
    5 << 16: "Lazy Function Loading",
    6 << 16: "Command Buffer Full",
    7 << 16: "Activity Buffer Request",
    8 << 16: "UVM Activity Init",
}
"""Names of ``CUpti_ActivityOverheadKind``; that of 0 is also the name of kinds that a newer CUPTI added."""
HOST_WAITS = (1, 3, 4)
"""``CUpti_ActivitySynchronizationType`` that make the host wait: event, stream, context; 2 makes a stream wait."""
ANNOTATION_EXTERNAL_KIND = 5
"""``CUpti_ExternalCorrelationKind``: CUSTOM2, ours, as other profilers use UNKNOWN, CUSTOM0 and CUSTOM1."""
DRIVER_DOMAIN, RUNTIME_DOMAIN = 1, 2
"""``CUpti_CallbackDomain`` of the API calls that are recorded."""


def copy_kind_name(kind: int) -> str:
    """The name of a copy kind, for people; of a kind that a newer CUPTI added its number."""
    return COPY_KINDS[kind] if kind < len(COPY_KINDS) else f"kind {kind}"
