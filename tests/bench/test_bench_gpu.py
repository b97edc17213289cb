"""The harness's calls to a real card, compared with the interfaces of its libraries, and answered by stand-ins."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest
from fake_nvml import FakeNvml

from collector.bench import cuda_gpu, roofline
from collector.bench.benchmark_report import Report
from collector.bench.cuda_gpu import CudaGpu, _Nvml
from collector.bench.gpu import CardState
from collector.bench.roofline import Ceilings
from collector.errors import DriverNotFoundError, UnavailableError

pytestmark = pytest.mark.simulator

CALLERS = {"_call": 0, "call": 0}
"""Names under which `collector.bench.cuda_gpu` calls a driver function, whose name is the first argument."""


def driver_calls(source):
    """(function, number of arguments) of every driver or NVRTC call in a file."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or any(isinstance(argument, ast.Starred) for argument in node.args):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[0] if node.args else None
        if name in CALLERS and isinstance(first, ast.Constant) and str(first.value).startswith("cu"):
            found.add((first.value, len(node.args) - 1))
        elif name.startswith(("cu", "nvrtc")) and name != "cuda" and isinstance(node.func, ast.Attribute):
            found.add((name, len(node.args)))
    return found


@pytest.mark.parametrize(
    "file", ["collector/bench/cuda_gpu.py", "examples/bench_saxpy.py", "tests/gpu/cuda_program.py"]
)
def test_every_driver_call_fits_cuda_python(root, file):
    driver = pytest.importorskip("cuda.bindings.driver", exc_type=ImportError)
    from cuda.bindings import nvrtc

    calls = driver_calls((root / file).read_text())
    assert len(calls) >= 10
    for name, arguments in calls:
        function = getattr(nvrtc if name.startswith("nvrtc") else driver, name)
        inspect.signature(function).bind(*range(arguments))


def test_the_enumerators_are_there():
    driver = pytest.importorskip("cuda.bindings.driver", exc_type=ImportError)
    assert int(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) == 38
    assert int(driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == 1
    assert int(driver.CUstream_flags.CU_STREAM_NON_BLOCKING) == 1
    assert int(driver.CUdeviceptr(7)) == 7
    assert int(driver.CUcontext()) == 0
    assert len(driver.CUuuid().bytes) == 16


def test_the_stand_in_takes_what_cuda_python_takes(root, monkeypatch):
    driver = pytest.importorskip("cuda.bindings.driver", exc_type=ImportError)
    monkeypatch.syspath_prepend(root / "tests" / "gpu")
    import simulated_cuda

    ours = [(name, each) for name, each in vars(simulated_cuda._Driver).items() if name.startswith("cu")]
    assert len(ours) > 25
    for name, function in ours:
        stand_in = len(inspect.signature(function).parameters) - 1
        assert stand_in == len(inspect.signature(getattr(driver, name)).parameters), name


@pytest.fixture
def nvml(monkeypatch):
    """Makes nvidia-ml-py talk to a `FakeNvml`, and opens a card with it."""
    module = pytest.importorskip("pynvml")

    def make(**options):
        library = FakeNvml(cards={"GPU-1": 1_980}, **options).install(monkeypatch, module)
        return library, _Nvml.open("GPU-1")

    return make


def test_sensors_are_read_through_nvidia_ml_py(nvml):
    _, card = nvml(reasons=0x4 | 0x20 | 0x1)  # a power cap, a thermal slowdown, and idle, which is no throttling
    assert card.state() == CardState(1980, 1980, 55, 345.6, ("SwPowerCap", "SwThermalSlowdown"))


def test_slow_sensors_are_asked_now_and_then_and_throttling_after_two_milliseconds(nvml, monkeypatch):
    library, card = nvml()
    now = [100.0]
    monkeypatch.setattr(cuda_gpu.time, "monotonic", lambda: now[0])
    first = card.state()
    assert first.throttled_by == ()
    library.reasons = 0x40
    now[0] += 0.001
    assert card.state() is first
    now[0] += 0.0011
    assert card.state().throttled_by == ("HwThermalSlowdown",)
    assert library.asked.count("nvmlDeviceGetPowerUsage") == 1
    now[0] += 0.06
    card.state()
    assert library.asked.count("nvmlDeviceGetPowerUsage") == 2
    assert library.asked.count("nvmlDeviceGetCurrentClocksThrottleReasons") == 3


@pytest.mark.parametrize(
    ("pids", "others"),
    [((), ()), (("me",), ()), (("me", 7, 5), (5, 7)), ((41,), ()), ((41, 42), (41, 42))],
    ids=["none", "alone", "others", "alone-by-another-number", "several-by-other-numbers"],
)
def test_other_processes_are_those_that_are_not_this_one(nvml, pids, others):
    _, card = nvml(pids=[os.getpid() if pid == "me" else pid for pid in pids])
    assert card.state().other_processes == others


def test_a_sensor_that_does_not_answer_leaves_the_others(nvml, monkeypatch):
    _, card = nvml(reasons=0x8)
    monkeypatch.setattr(sys.modules["pynvml"], "nvmlDeviceGetPowerUsage", lambda handle: 1 / 0)
    assert card.state() == CardState(1980, 1980, 55, None, ("HwSlowdown",))


def test_a_part_of_a_card_is_found_by_its_address(nvml, monkeypatch):
    nvml()
    pynvml, asked = sys.modules["pynvml"], []
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByUUID", lambda uuid: 1 / 0)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByPciBusId", asked.append)
    assert _Nvml.open("GPU-of-a-part", "0000:1B:00.0").state() is not None
    assert asked == ["0000:1B:00.0"]


def test_a_card_whose_sensors_do_not_answer_has_no_state(nvml, monkeypatch):
    _, card = nvml()
    monkeypatch.setattr(sys.modules["pynvml"], "nvmlDeviceGetCurrentClocksThrottleReasons", lambda handle: 1 / 0)
    assert card.state() is None


def test_without_nvml_nothing_is_known(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert _Nvml.open("GPU-1") is None


@pytest.fixture
def cuda(root, monkeypatch, tmp_path):
    """`find_gpu` on the driver's stand-in."""
    monkeypatch.syspath_prepend(root / "tests" / "gpu")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    import simulated_cuda

    from collector.testing import SimulatedGpu

    cuda_gpu._gpu_of_context.cache_clear()
    with SimulatedGpu(real_time=True, api_call_ns=500) as simulated:
        bindings = ModuleType("cuda.bindings")
        bindings.driver = simulated_cuda._Driver(simulated)
        package = ModuleType("cuda")
        package.bindings = bindings
        monkeypatch.setitem(sys.modules, "cuda", package)
        monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
        monkeypatch.setitem(sys.modules, "pynvml", None)
        yield SimpleNamespace(driver=bindings.driver, gpu=cuda_gpu.find_gpu(), simulated=simulated)
    cuda_gpu._gpu_of_context.cache_clear()


def launcher(cuda, name, stream=0):
    return lambda stream=stream: cuda.driver.cuLaunchKernel(name, 1, 1, 1, 1, 1, 1, 0, stream, 0, 0)


def test_the_card_is_the_current_contexts_and_is_made_once(cuda):
    assert (cuda.gpu.name, cuda.gpu.l2_bytes) == ("Simulated GPU", 50 << 20)
    assert cuda.gpu.uuid == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert cuda_gpu.find_gpu() is cuda.gpu
    assert cuda.driver.cuCtxGetCurrent() == (0, 1)  # the primary one, made current
    assert cuda.gpu.state() is None


def test_the_cache_is_emptied_by_twice_its_size_and_probed_with_half(cuda, monkeypatch):
    sets, copies = [], []
    monkeypatch.setattr(cuda.driver, "cuMemsetD8Async", lambda *given: (sets.append(given), (0,))[1])
    monkeypatch.setattr(cuda.driver, "cuMemcpyDtoDAsync", lambda *given: (copies.append(given), (0,))[1])
    cuda.gpu.flush_l2()
    cuda.gpu.touch()
    ((_, _, num_bytes, stream),) = sets
    ((target, source, copied, _),) = copies
    assert (num_bytes, stream) == (2 * cuda.gpu.l2_bytes, 0)
    assert 2 * copied == cuda.gpu.l2_bytes // 2  # read and written
    assert target == source + copied


def test_arms_are_measured_on_it_call_by_call_and_by_graphs(cuda):
    pytest.importorskip("scipy")
    from collector import bench

    arms = {"one": launcher(cuda, "k"), "two": lambda stream=0: [launcher(cuda, "k")(stream) for _ in range(2)]}
    for graph_calls in (0, 20):
        report = bench.compare(arms, gpu=cuda.gpu, graph_calls=graph_calls, max_rounds=40, cache="hot")
        comparison = report.comparison
        assert not comparison.failures
        assert comparison.ratios["two"].interval.estimate == pytest.approx(2.0)
        assert comparison.arms["two"].launches == (1 if graph_calls else 2)
        assert report.environment["simulated"] is True


def test_a_call_that_takes_no_stream_cannot_go_into_a_graph(cuda):
    pytest.importorskip("scipy")
    from collector import bench

    arms = {"good": launcher(cuda, "k"), "bad": lambda: launcher(cuda, "k")()}
    comparison = bench.compare(arms, gpu=cuda.gpu, graph_calls=5, max_rounds=40).comparison
    assert "takes the stream to launch on" in comparison.failures["bad"]
    assert set(comparison.arms) == {"good"}


def test_what_a_call_raises_while_it_is_captured_is_what_is_reported(cuda):
    def bad(stream=0):
        if stream:
            raise KeyError("only while captured")

    with pytest.raises(KeyError, match="only while captured"):
        cuda.gpu.graph(bad, 3)
    replay = cuda.gpu.graph(launcher(cuda, "k"), 3)  # and the capture has ended
    replay()


def test_with_torch_its_graphs_are_used(cuda, monkeypatch):
    log = []

    class Graph:
        def replay(self):
            log.append("replay")

    class Capture:
        def __init__(self, graph):
            assert isinstance(graph, Graph)

        def __enter__(self):
            log.append("begin")

        def __exit__(self, *exc):
            log.append("end")

    torch = SimpleNamespace(cuda=SimpleNamespace(CUDAGraph=Graph, graph=Capture, is_available=lambda: True))
    monkeypatch.setitem(sys.modules, "torch", torch)
    cuda.gpu.graph(lambda: log.append("call"), 2)()
    assert log == ["begin", "call", "call", "end", "replay"]
    del log[:]
    cuda.gpu.graph(lambda a=1: log.append(a), 1)()  # what a call keeps in its defaults is not a stream
    assert log == ["begin", 1, "end", "replay"]
    del log[:]
    cuda.gpu.graph(launcher(cuda, "k"), 2)()  # and one that takes a stream launches on that
    assert log == []


WITHOUT_CUDA = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))


def test_a_torch_that_was_built_without_cuda_is_as_none(cuda, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", WITHOUT_CUDA)
    cuda.gpu.graph(launcher(cuda, "k"), 3)()
    assert roofline.matrix_product_rate(cuda.gpu) == (None, "no matrix library loaded")


def test_memory_that_is_not_there_is_reported_as_such(cuda):
    pytest.importorskip("scipy")
    from collector import bench

    def greedy():
        cuda.gpu._call("cuMemAlloc", 1 << 50)

    comparison = bench.compare({"good": launcher(cuda, "k"), "greedy": greedy}, gpu=cuda.gpu, max_rounds=40).comparison
    assert "needs more memory than is available" in comparison.failures["greedy"]
    assert set(comparison.arms) == {"good"}


def test_ceilings_are_measured_once_and_again_when_a_product_can_be(cuda, monkeypatch, tmp_path):
    monkeypatch.setattr(roofline, "_torch_installed", lambda: False)
    first = roofline.ceilings(cuda.gpu)
    assert first.bytes_per_s > 0
    assert first.flop_per_s is None
    stored = json.loads((tmp_path / "cupti-collector" / f"ceilings-{cuda.gpu.uuid}.json").read_text())
    assert Ceilings(**stored) == first
    monkeypatch.setattr(CudaGpu, "measure_ceilings", lambda self: Ceilings(1e12, 2e14, "torch 9"))
    assert roofline.ceilings(cuda.gpu) == first
    monkeypatch.setitem(sys.modules, "torch", WITHOUT_CUDA)
    assert roofline.ceilings(cuda.gpu) == first
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: True)))
    assert roofline.ceilings(cuda.gpu).flop_per_s == 2e14
    monkeypatch.delitem(sys.modules, "torch")
    assert roofline.ceilings(cuda.gpu).flop_per_s == 2e14


def test_a_product_is_timed_by_events_with_torch(monkeypatch):
    made = []

    def matmul(a, b, out):
        made.append(out)

    torch = SimpleNamespace(
        bfloat16="bf16", __version__="9", matmul=matmul,
        randn=lambda *size, device, dtype: size, empty=lambda *size, device, dtype: size,
        cuda=SimpleNamespace(is_available=lambda: True),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", torch)

    class Gpu:
        times = iter(range(2_000_000, 1_000_000, -10_000))

        def event_ns(self, call, before=None):
            call()
            return next(self.times)

    rate, library = roofline.matrix_product_rate(Gpu(), size=1024, repeats=3)
    assert library == "torch 9"
    assert len(made) == 6
    assert rate == pytest.approx(2 * 1024**3 / 1_950_000 * 1e9)


TORCH = """
import os, time
__version__ = "9 on " + os.environ["CUDA_VISIBLE_DEVICES"]
bfloat16 = "bf16"
def randn(*size, device, dtype):
    if size[0] > 5000:
        raise RuntimeError("CUDA out of memory")
    return size
empty = randn
def matmul(a, b, out):
    pass
class cuda:
    is_available = staticmethod(lambda: True)
    class Event:
        def __init__(self, enable_timing): assert enable_timing
        def record(self): pass
        def synchronize(self): pass
        def elapsed_time(self, other): return 2.0
"""


@pytest.mark.medium
def test_where_torch_is_not_loaded_another_process_multiplies(cuda, monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text(TORCH)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(roofline, "_torch_installed", lambda: True)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    rate, library = roofline.matrix_product_rate(cuda.gpu, size=1024)
    assert library == f"torch 9 on {cuda.gpu.uuid}"
    assert rate == pytest.approx(2 * 1024**3 / 2e-3)
    assert "torch" not in sys.modules
    assert roofline.matrix_product_rate(cuda.gpu) == (
        None,
        "torch cannot multiply here: RuntimeError: CUDA out of memory",
    )


def test_a_card_without_room_for_the_ceilings_keeps_what_was_measured(cuda, monkeypatch):
    pytest.importorskip("scipy")
    from collector import bench

    def no_room(self):
        raise UnavailableError("cuMemAlloc failed with CUDA error 2")

    monkeypatch.setattr(CudaGpu, "measure_ceilings", no_room)
    comparison = bench.compare({"one": launcher(cuda, "k")}, gpu=cuda.gpu, bytes=1000, max_rounds=40).comparison
    assert comparison.arms["one"].median_ns.estimate == 1000
    assert comparison.ceilings is None
    assert "the card's ceilings could not be measured: cuMemAlloc failed with CUDA error 2" in comparison.warnings


def test_a_driver_that_says_no_is_no_gpu(cuda, monkeypatch):
    monkeypatch.setattr(cuda.driver, "cuInit", lambda flags: (100,))
    with pytest.raises(UnavailableError, match="cuInit failed with CUDA error 100"):
        cuda_gpu.find_gpu()

    def raises(flags):
        raise RuntimeError("libcuda.so.1 is missing")

    monkeypatch.setattr(cuda.driver, "cuInit", raises)
    with pytest.raises(UnavailableError, match="no GPU can be used"):
        cuda_gpu.find_gpu()
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(UnavailableError, match="cuda-python is not installed"):
        cuda_gpu.find_gpu()


@pytest.mark.parametrize("has_bindings", [False, True])
def test_a_missing_driver_is_named_before_cuda_python(has_bindings, monkeypatch, tmp_path):
    bindings = ModuleType("cuda.bindings")
    bindings.driver = SimpleNamespace(cuInit=lambda flags: (100,))
    monkeypatch.setitem(sys.modules, "cuda", ModuleType("cuda") if has_bindings else None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings if has_bindings else None)
    monkeypatch.setenv("COLLECTOR_LIBCUDA", str(tmp_path / "absent.so"))
    with pytest.raises(DriverNotFoundError, match=r"no NVIDIA driver .* Correct COLLECTOR_LIBCUDA"):
        cuda_gpu.find_gpu()


REAL_BINDINGS = """
import sys
import simulated_cuda
simulated_cuda.install()
import cuda.bindings
from collector.cli import main
print("cuda.bindings", cuda.bindings.__version__)
sys.exit(main(["bench", sys.argv[1], "-q", "-k", "65536|tiny", "--max-seconds=5", f"--json={sys.argv[2]}", "--runs=1"]))
"""


@pytest.mark.slow
def test_the_example_runs_through_the_real_cuda_python_and_nvrtc(root, tmp_path):
    pytest.importorskip("scipy")
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc", exc_type=ImportError)
    try:
        nvrtc.nvrtcVersion()
    except Exception as error:
        pytest.skip(f"NVRTC is not installed ({error})")
    file = tmp_path / "saxpy.json"
    done = subprocess.run(
        [sys.executable, "-c", REAL_BINDINGS, str(root / "examples" / "bench_saxpy.py"), str(file)],
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([str(root / "tests" / "gpu"), os.environ.get("PYTHONPATH", "")]),
            "COLLECTOR_GPU_TESTS_SIMULATED": "bindings",
            "XDG_CACHE_HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    comparisons = {each.title: each for each in Report.load(file).comparisons}
    assert set(comparisons) == {"saxpy[n=65536]", "tiny"}
    for each in comparisons.values():
        assert not each.failures
        assert each.ratios["two kernels"].interval.estimate == pytest.approx(2.0)
    assert comparisons["saxpy[n=65536]"].ceilings["bytes_per_s"] > 0


def test_the_examples_kernels_are_compiled_checked_and_compared(cuda, root, monkeypatch):
    pytest.importorskip("scipy")
    import simulated_cuda

    from collector import bench
    from collector.bench.discovery import discover

    sys.modules["cuda.bindings"].nvrtc = simulated_cuda._Nvrtc()
    freed = []
    monkeypatch.setattr(cuda.driver, "cuMemFree", lambda address: (freed.append(address), (0,))[1])
    for instance in discover([root / "examples" / "bench_saxpy.py"], "65536|tiny"):
        with instance.prepared() as case:
            assert case.options["gpu"] is cuda.gpu
            comparison = bench.compare(case.arms, **{**case.options, "max_rounds": 40}).comparison
        assert not comparison.failures
        assert comparison.ratios["two kernels"].interval.estimate == pytest.approx(2.0)
    assert len(freed) >= 6
