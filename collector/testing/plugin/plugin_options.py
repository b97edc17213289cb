"""The plugin's options on the command line and in the ini file, checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from collector.files.atomic_files import expanded
from collector.formats.output_paths import filled_in
from collector.testing.plugin.switch_words import OFF, ON

if TYPE_CHECKING:
    import pytest

    from collector.formats.output_paths import ProcessIdentity


class OptionError(ValueError):
    """An invalid value of an option. One line."""


@dataclass(frozen=True)
class Keep:
    """The tests whose traces are kept."""

    rule: Literal["failed", "always", "slow"]
    count: int = 0
    """For ``slow``: the number of tests, those with the most device time."""


@dataclass(frozen=True)
class PluginOptions:
    """One test run's options."""

    trace: bool = False
    """Trace every test, not only those with markers or fixtures."""
    folder: Path | None = None
    """Folder for the traces that are kept."""
    keep: Keep = Keep("failed")
    report: Path | None = None
    pages: Path | None = None
    """Folder for a page about each test."""
    dataset: Path | None = None
    """Folder of a dataset that every test is added to."""
    dumps: Path | None = None
    """Folder for the dumps of the recorder when a test fails."""
    leaks: bool = False
    """Look for leaks in every test that uses the GPU, not only in those with the marker."""
    lines: bool = False
    """Record the lines of Python code even if that is slow."""
    require_gpu: bool = False
    simulate: int = 0
    """Number of devices to simulate; 0: use the machine's."""
    update_snapshots: bool = False

    @property
    def active(self) -> bool:
        """Whether any option is set; otherwise only tests with our markers or fixtures matter."""
        return self != PluginOptions()


def read_options(config: pytest.Config, process: ProcessIdentity) -> PluginOptions:
    """Return the options of ``config``; the ini file provides the defaults of the command line.

    Args:
        config: the configuration of pytest.
        process: the process of the run, from which the placeholders in paths are filled in: the controller of workers.

    Raises:
        OptionError: a value is impossible.
        OutputError: a placeholder of a path cannot be filled in.
    """

    def stated(name: str) -> str | None:
        given: str | None = config.getoption(f"collector_{name}")
        return given if given is not None else config.getini(name) or None

    def is_off(name: str) -> bool:
        return (stated(name) or "").lower() in OFF

    def text(name: str) -> str | None:
        """The stated text; ``"on"`` and None for words that switch the option on and off."""
        value = stated(name)
        if value is None or is_off(name):
            return None
        return "on" if value.lower() in ("", *ON) else value

    def path(name: str, kind: str) -> Path | None:
        """A path relative to the current folder on the command line, and to the root folder in the ini file."""
        given = text(name)
        if given is None:
            return None
        if given == "on":
            raise OptionError(f"--{name.replace('_', '-')}={stated(name)}: it must be the name of a {kind}")
        is_ini = config.getoption(f"collector_{name}") is None
        folder = config.rootpath if is_ini else config.invocation_params.dir
        return Path(folder, filled_in(expanded(given), None, process=process))

    def flag(name: str) -> bool:
        return bool(config.getoption(f"collector_{name}") or config.getini(name))

    trace = text("gpu_trace")
    folder = path("gpu_trace", "folder") if trace not in (None, "on") else None
    keep = text("gpu_trace_keep")
    if keep is not None and folder is None and not is_off("gpu_trace"):
        raise OptionError(f"--gpu-trace-keep={keep} needs a folder to keep traces in: --gpu-trace=FOLDER")
    simulate, require = _devices(text("gpu_simulate")), flag("require_gpu")
    if simulate and require:  # one of them on the command line decides against the other in the ini file
        given = [config.getoption(f"collector_{name}") is not None for name in ("gpu_simulate", "require_gpu")]
        if given[0] == given[1]:
            raise OptionError(
                "--require-gpu and --gpu-simulate exclude each other: simulated GPUs run none of the tests that need a"
                " real one"
            )
        simulate, require = (simulate, False) if given[0] else (0, True)
    report, pages, dataset = path("gpu_report", "file"), path("gpu_html", "folder"), path("gpu_dataset", "folder")
    return PluginOptions(
        trace=any(each is not None for each in (trace, report, pages, dataset)),
        folder=folder,
        keep=parse_keep(keep or "failed"),
        report=report,
        pages=pages,
        dataset=dataset,
        dumps=path("gpu_record", "folder"),
        leaks=flag("gpu_leaks"),
        lines=flag("gpu_lines"),
        require_gpu=require,
        simulate=simulate,
        update_snapshots=bool(config.getoption("collector_gpu_snapshot_update")),
    )


def parse_keep(text: str) -> Keep:
    """Parse ``failed``, ``always`` or ``slow:N``.

    Raises:
        OptionError: the text is none of these.
    """
    if text == "failed":
        return Keep("failed")
    if text == "always":
        return Keep("always")
    rule, _, count = text.partition(":")
    if rule == "slow" and count.isascii() and count.isdigit() and int(count) > 0:
        return Keep("slow", int(count))
    raise OptionError(f"--gpu-trace-keep={text}: it must be failed, always or slow:N with N of 1 or more")


def _devices(text: str | None) -> int:
    if text is None:
        return 0
    if text == "on":
        return 1
    if text.isascii() and text.isdigit() and 0 < int(text) <= 64:
        return int(text)
    raise OptionError(f"--gpu-simulate={text}: it must be the number of devices to simulate, 1 to 64")
