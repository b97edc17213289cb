"""CUPTI's enumerations, by the numbers that its C interface fixes."""

from __future__ import annotations

COPY_KINDS = ("<unknown>", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
"""Names of ``CUpti_ActivityMemcpyKind``, as TensorFlow writes them."""
MEMORY_KINDS = ("Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "DeviceStatic", "ManagedStatic")
"""Names of ``CUpti_ActivityMemoryKind``."""
DEVICE_MEMORY = (3, 4, 5)
"""Memory kinds that a program takes from a device and gives back; not a module's variables."""
ALLOCATION, RELEASE = 1, 2
"""``CUpti_ActivityMemoryOperationType``."""
HOST_WAITS = (1, 3, 4)
"""``CUpti_ActivitySynchronizationType`` that make the host wait: event, stream, context; 2 makes a stream wait."""
ANNOTATION_EXTERNAL_KIND = 5
"""``CUpti_ExternalCorrelationKind``: CUSTOM2, ours, as other profilers use UNKNOWN, CUSTOM0 and CUSTOM1."""
DRIVER_DOMAIN, RUNTIME_DOMAIN = 1, 2
"""``CUpti_CallbackDomain`` of the API calls that are recorded."""


def copy_kind_name(kind: int) -> str:
    """The name of a copy kind, for people; of a kind that a newer CUPTI added its number."""
    return COPY_KINDS[kind] if kind < len(COPY_KINDS) else f"kind {kind}"
