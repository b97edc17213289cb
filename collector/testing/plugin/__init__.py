"""The pytest plugin: traces, limits and requirements of each test's GPU work.

Every pytest run in an environment with this package imports this module, so it imports nothing but the names of its
markers and a few words: the parts are imported when an option, a marker or a fixture needs them. Use
``-p no:collector`` to switch it off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.testing.plugin.marker_names import FIXTURE_NAMES, MARKER_NAMES
from collector.testing.plugin.switch_words import OFF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.testing.plugin.runner import GpuRunner
    from collector.testing.plugin.traced_step import Step
    from collector.testing.simulator.simulated_gpu import SimulatedGpu

_MARKERS = (
    "gpu(count=1, memory=None, compute_capability=None, simulate=False): needs this many GPUs, each with this much "
    'memory for the test ("16GiB") and at least this compute capability ((8, 0)); otherwise skipped with the reason. '
    "simulate=True: can also run on the simulated GPU of --gpu-simulate.",
    "gpu_limits(**limits): upper limits for the GPU work of the test's call: kernels, launches, memcpys, memcpy_bytes, "
    "memcpy_htod_bytes, memcpy_dtoh_bytes, memcpy_dtod_bytes, memcpy_ptop_bytes, memsets, memset_bytes, "
    'device_time="250us", kernel_time, synchronizations, allocations, streams, devices.',
    "gpu_leaks: fails if the test allocates device memory and does not free it.",
    "gpu_untraced(reason): not traced, for a test that uses CUPTI itself.",
)

_OPTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "--gpu-trace",
        "trace the GPU work of every test and list the ten tests with most of it; with =FOLDER, keep traces there",
        {"nargs": "?", "const": "on", "metavar": "FOLDER"},
    ),
    (
        "--gpu-trace-keep",
        "tests whose traces are kept in the folder: failed (the default), always, or slow:N, the N with most GPU time",
        {"metavar": "WHICH"},
    ),
    ("--gpu-report", "trace every test, and write the GPU work of each to a JSON file", {"metavar": "FILE"}),
    (
        "--gpu-html",
        "trace every test and write a page about each that used the GPU into this folder, with an index of all",
        {"metavar": "FOLDER"},
    ),
    (
        "--gpu-dataset",
        "trace every test and add the GPU work of each to the dataset in this folder, for collector sql",
        {"metavar": "FOLDER"},
    ),
    (
        "--gpu-record",
        "record all GPU work in the background, and write the last 30 s before a failure into this folder",
        {"metavar": "FOLDER"},
    ),
    ("--gpu-leaks", "look for leaked device memory in every test that uses the GPU", {"action": "store_true"}),
    (
        "--gpu-lines",
        "before Python 3.12, record the lines of tests with limits, leak checks or steps for their messages; slow",
        {"action": "store_true"},
    ),
    ("--require-gpu", "fail at once if there is no usable GPU, instead of skipping", {"action": "store_true"}),
    (
        "--gpu-simulate",
        "run the GPU tests that support it on simulated GPUs (default: 1), and skip the others",
        {"nargs": "?", "const": "on", "metavar": "DEVICES"},
    ),
    ("--gpu-snapshot-update", "write snapshots instead of comparing with them", {"action": "store_true"}),
)

_INI = tuple(option.removeprefix("--").replace("-", "_") for option, _, _ in _OPTIONS[:-1])
"""Options that have an ini value as their default."""
_WITH_OPTIONAL_VALUE = ("--gpu-trace", "--gpu-simulate")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options, and an ini value for each but the last."""
    group = parser.getgroup("gpu", "GPU work of tests (cupti-collector)")
    for option, text, settings in _OPTIONS:
        name = option.removeprefix("--").replace("-", "_")
        group.addoption(option, dest=f"collector_{name}", help=text, default=None, **settings)
        if name in _INI:
            if settings.get("action") == "store_true":
                parser.addini(name, f"default of {option}", type="bool", default=False)
            else:
                parser.addini(name, f"default of {option}", type="string", default="")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """Let an option with an optional value take it after ``=`` only: ``pytest --gpu-trace tests`` runs tests."""
    end = args.index("--") if "--" in args else len(args)
    found = [index for index, argument in enumerate(args[:end]) if argument in _WITH_OPTIONAL_VALUE]
    for index in found:
        args[index] += "=on"
    if found:
        import copy

        # Without the folder that pytest has determined by now, conftest files would be searched in all folders up to
        # the root.
        confcutdir = early_config.known_args_namespace.confcutdir
        early_config.known_args_namespace = parser.parse_known_args(args, namespace=copy.copy(early_config.option))
        early_config.known_args_namespace.confcutdir = confcutdir


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and start the plugin proper if an option needs it."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    options, distributed = config.option, getattr(config.option, "dist", "no") != "no"
    values = [getattr(options, f"collector_{name}") or config.getini(name) for name in _INI]
    asked = any(each and str(each).lower() not in OFF for each in values)
    # With workers, the controller's part must be started before the first test with a marker is known.
    if asked or options.collector_gpu_snapshot_update or distributed:
        _start(config)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Report and remove tests with an invalid marker; start the plugin proper if other tests have markers."""
    ours = list(_ours(items))
    if ours:
        from collector.testing.plugin.marker_check import sort_out

        if sort_out(items, ours):
            _start(config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Start the plugin proper if a fixture adds the first marker of the run."""
    yield
    if any(map(_is_ours, item.own_markers)):
        _start(item.config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Report that a marker which a test has added to itself came too late, if no part of the plugin was active."""
    yield
    if any(map(_is_ours, item.own_markers)) and not item.config.pluginmanager.hasplugin("collector-gpu-runner"):
        from collector.testing.plugin.markers import ADDED_LATE

        pytest.fail(ADDED_LATE, pytrace=False)


def _ours(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """The tests with a marker or a fixture of ours; the markers of classes and modules are looked up only once."""
    marked: dict[pytest.Collector | None, bool] = {None: False}

    def is_marked(parent: pytest.Collector | None) -> bool:
        known = marked.get(parent)
        if known is None and parent is not None:
            known = marked[parent] = any(map(_is_ours, parent.own_markers)) or is_marked(parent.parent)
        return bool(known)

    for item in items:
        asks = not FIXTURE_NAMES.isdisjoint(getattr(item, "fixturenames", ()))
        if asks or any(map(_is_ours, item.own_markers)) or is_marked(item.parent):
            yield item


def _is_ours(mark: pytest.Mark) -> bool:
    return mark.name in MARKER_NAMES


def _start(config: pytest.Config) -> None:
    from collector.testing.plugin.plugin_start import start

    start(config)


def _runner(request: pytest.FixtureRequest) -> GpuRunner:
    _start(request.config)  # a test may ask for its fixture by name (`request.getfixturevalue`), the first in the run
    runner: GpuRunner = request.config.pluginmanager.getplugin("collector-gpu-runner")
    return runner


@pytest.fixture
def gpu_trace(request: pytest.FixtureRequest) -> Callable[..., Step]:
    """A function that traces a step of the test in a ``with`` block; its arguments are limits.

    After ``with gpu_trace(kernels=3) as step: ...`` the step has ``kernels``, ``memcpys``, ``memsets``, ``figures``,
    ``ledger``, ``step_stats``, ``save(path)`` and ``assert_matches_snapshot()``. A test may trace several steps, one
    after the other.
    """
    runner = _runner(request)
    return lambda **limits: runner.open_step(request.node, limits)


@pytest.fixture
def gpu_devices(request: pytest.FixtureRequest) -> tuple[int, ...]:
    """The numbers of the devices that the test may use, as many as its ``gpu`` marker requires."""
    return _runner(request).devices_of(request.node)


def _simulated_gpu(request: pytest.FixtureRequest) -> Iterator[SimulatedGpu]:
    """The simulated GPU for launches: that of ``--gpu-simulate``, one of a wider scope, or a new one for this scope."""
    with _runner(request).simulated_gpu(request.node) as gpu:
        yield gpu


simulated_gpu = pytest.fixture(_simulated_gpu, name="simulated_gpu")
class_simulated_gpu = pytest.fixture(_simulated_gpu, scope="class", name="class_simulated_gpu")
module_simulated_gpu = pytest.fixture(_simulated_gpu, scope="module", name="module_simulated_gpu")
package_simulated_gpu = pytest.fixture(_simulated_gpu, scope="package", name="package_simulated_gpu")
session_simulated_gpu = pytest.fixture(_simulated_gpu, scope="session", name="session_simulated_gpu")
