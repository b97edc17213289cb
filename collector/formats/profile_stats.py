"""Names of the stats of XSpace profiles that this project writes and reads; XProf shows some as arguments."""

from __future__ import annotations

from collector.protos.activity_pb2 import Activity

PROVENANCE = "collector"
"""The stat of the plane "Task Environment" with the origin of a profile, as JSON: the step's window, ledger, losses."""
CORRELATION = "correlation_id"
"""The stat with the correlation id of work on a stream, and of a call."""
LAUNCH_CORRELATION = "launch_correlation_id"
"""That of rows beside the streams of a GPU, because XProf would add rows with the usual name to the GPU's work."""
ACTIVITY = "collector_activity"
"""The stat of the host's events that states the kind of each row, one of the values of `KINDS`: the name of a row
may not distinguish an op from a call."""
LABEL = "timeline_label"
"""The stat of the host's events that states the op type and the inputs."""
OP = "tf_op"
"""The stat with the op of work."""
KERNEL_DETAILS, MEMCPY_DETAILS, MEMSET_DETAILS = "kernel_details", "memcpy_details", "memset_details"
"""The stats with the properties of work as words ``key:value``."""

KINDS = {value.number: value.name.lower() for value in Activity.Kind.DESCRIPTOR.values if value.number}
"""Number of a kind of rows -> the value of `ACTIVITY`."""
