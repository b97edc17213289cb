"""Names from frameworks in an unmodified program, for ``collector run --python``."""

from __future__ import annotations

from collector.tracing.recorded_process import send_annotations_to_run


def _name_torch() -> None:
    from collector.adapters.torch_modules import annotate_all_modules
    from collector.adapters.torch_steps import annotate_torch_steps

    annotate_all_modules()
    annotate_torch_steps()


def _name_triton() -> None:
    from collector.adapters.triton_launches import annotate_triton_launches

    annotate_triton_launches()


ADAPTERS = {"torch": _name_torch, "triton": _name_triton}
"""Framework -> the function that names its work; ``FRAMEWORKS`` of python_startup/sitecustomize.py names the same."""


def name_work_of(framework: str) -> None:
    """Name the GPU work of a framework that was imported, one of `ADAPTERS`, for the rest of the process.

    Raises:
        collector.CollectorError: annotations of this process do not reach the recording.
    """
    send_annotations_to_run(strict=True)
    ADAPTERS[framework]()
