"""Starts the plugin proper, in the process that reports and in the processes that run tests."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from collector.errors import MissingDependencyError, OutputError
from collector.formats.output_paths import ProcessIdentity, this_process
from collector.runtime.optional_packages import optional_package
from collector.testing.plugin.device_sharing import Sharing, device_names, rotated
from collector.testing.plugin.devices import SIMULATED, find_devices
from collector.testing.plugin.plugin_options import OptionError, PluginOptions, read_options
from collector.testing.plugin.run_reporting import RunReporting
from collector.testing.plugin.runner import GpuRunner
from collector.text.terminal import printable_lines

_RUNNER, _REPORTING = "collector-gpu-runner", "collector-gpu-reporting"


def start(config: pytest.Config) -> None:
    """Register the plugins that follow the tests and that report on them; does nothing the second time.

    Raises:
        pytest.UsageError: an option has an invalid value.
    """
    plugins = config.pluginmanager
    if plugins.hasplugin(_RUNNER) or plugins.hasplugin(_REPORTING):
        return
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    try:
        options = read_options(config, _process_of_run(worker))
        if options.dataset is not None:
            optional_package("pyarrow.parquet")
    except (OptionError, MissingDependencyError, OutputError) as error:
        raise pytest.UsageError(printable_lines(str(error))) from None
    if worker is None and getattr(config.option, "dist", "no") != "no":
        plugins.register(RunReporting(options, None), _REPORTING)
        return
    sharing, shares = (None, {}) if worker is None else _share(worker, options)
    may_leave = worker is not None and bool(worker.get("collector_gpu", {}).get("may_leave"))
    runner = GpuRunner(options, Path(config.rootpath), sharing, shares, may_leave=may_leave)
    plugins.register(runner, _RUNNER)
    plugins.register(runner.leaks)
    runner.start()
    if worker is None:
        plugins.register(RunReporting(options, runner.found), _REPORTING)


def _process_of_run(worker: dict[str, Any] | None) -> ProcessIdentity:
    """The process that reports, so that all workers write to the places that it names."""
    of_run: dict[str, Any] = (worker or {}).get("collector_gpu", {})
    here = this_process()
    return replace(here, process_id=of_run.get("process_id", here.process_id), host=of_run.get("host", here.host))


def _share(worker: dict[str, Any], options: PluginOptions) -> tuple[Sharing | None, dict[str, int]]:
    """Give each worker another first device; return the claims' file, and the bytes that this worker claims."""
    if "collector_gpu" not in worker:  # another machine's worker, or a controller without this plugin
        return None, {}
    found = () if options.simulate else find_devices(simulated=False).devices
    memory = [device.memory_bytes for device in found] or [SIMULATED.memory_bytes] * options.simulate
    names = device_names(None if options.simulate else os.environ.get("CUDA_VISIBLE_DEVICES"), len(memory))
    if len(names) != len(memory):
        return None, {}
    total = dict(zip(names, memory, strict=True))
    number = int("".join(filter(str.isdigit, worker["workerid"])) or 0)
    mine = rotated(names, number)
    if len(mine) > 1 and not options.simulate:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(mine)
    workers = max(int(worker.get("workercount", 1)), 1)
    return Sharing(Path(worker["collector_gpu"]["claims"]), total), {name: total[name] // workers for name in mine}
