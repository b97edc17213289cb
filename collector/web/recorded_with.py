"""The software and the GPUs with which a step was recorded, as far as the recording states them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.recording.device_models import device_models
from collector.recording.recorder_name import recorder_of
from collector.sources.machine_checks import cuda_text

if TYPE_CHECKING:
    from collector.recording.recording import Recording

_SOURCES = {
    "native": "CUPTI, read by cupti-collector",
    "cupti_python": "CUPTI, read by cupti-python",
    "replay": "a recording that was replayed",
    "profiler": "the trace of another profiler",
}
"""Source in the environment -> words for it; other sources are names of programs."""


def recorded_with(recording: Recording) -> list[tuple[str, str]]:
    """What recorded, versions and models as pairs of texts; no path, no name of a machine or a person."""
    environment = recording.environment
    source = recorder_of(environment)
    versions = {key: environment.get(key) for key in ("cuda_version", "driver_version", "cupti_api_version")}
    numbers = {key: value for key, value in versions.items() if type(value) is int and value > 0}
    driver = cuda_text(numbers.get("driver_version"))
    found = [
        ("source", _SOURCES.get(source, source)),
        ("CUDA", cuda_text(numbers.get("cuda_version"))),
        ("driver", f"for CUDA up to {driver}" if driver else ""),
        ("CUPTI", f"API version {numbers['cupti_api_version']}" if "cupti_api_version" in numbers else ""),
        *((f"GPU {device}", model) for device, model in device_models(recording).items()),
    ]
    return [(name, text) for name, text in found if text]
