"""The models of the GPUs of a recording, such as ``NVIDIA H100 80GB HBM3``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.recording.stream_devices import stated_by_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.recording.recording import Recording


def device_models(recording: Recording) -> dict[int, str]:
    """Ordinal -> model, of the devices that worked and whose model is known, in order.

    A device that recorded its properties has the model of these; of other devices the environment states it. A
    simulated GPU has no model.
    """
    if recording.environment.get("simulated"):
        return {}
    known = stated_by_number(recording.environment.get("devices"))
    table = recording.devices
    known |= {
        device: name for device, name in zip(table.device_id.tolist(), table.names(), strict=True) if name.strip()
    }
    return {device: known[device] for device in recording.working_devices if known.get(device)}


def models_in_words(recordings: Sequence[Recording]) -> str:
    """The different models of all devices that worked, in order; empty if the model of one is not known."""
    found: set[str] = set()
    for recording in recordings:
        models = device_models(recording)
        if len(models) < len(recording.working_devices):
            return ""
        found.update(models.values())
    return ", ".join(sorted(found))
