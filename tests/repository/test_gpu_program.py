"""The GPU tests' program with the real cuda-python, as far as possible without a GPU."""

import importlib.util
import inspect
import re
import sys

import pytest

driver = pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
nvrtc = pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-python is not installed")


@pytest.fixture
def load(root, monkeypatch):
    def load(name):
        monkeypatch.syspath_prepend(str(root / "tests" / "gpu"))
        spec = importlib.util.spec_from_file_location(f"gpu_tests_{name}", root / "tests" / "gpu" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.mark.medium
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_the_kernels_compile_and_have_the_names_that_are_expected(load, arch):
    program = load("cuda_program")
    try:
        nvrtc.nvrtcVersion()
    except Exception as error:
        pytest.skip(f"NVRTC is not installed ({error})")
    cubin = program.compile_kernels(arch)
    assert cubin.startswith(b"\x7fELF")
    for name in program.MANGLED.values():
        assert re.search(rb"\.text\." + name.encode() + rb"\0", cubin), name
    with pytest.raises(program.CudaError, match="error"):
        program.compile_kernels(arch, "not CUDA")


def test_the_programs_name_what_the_bindings_have(root):
    folders = (root / "tests" / "gpu", root / "scripts" / "card", root / "benchmarks")
    texts = [path.read_text() for folder in folders for path in folder.glob("*.py")]
    names = {name for text in texts for name in re.findall(r"\bdriver\.(cu[A-Z]\w+|CU\w+)", text)}
    assert len(names) > 40
    assert [name for name in sorted(names) if not hasattr(driver, name)] == []


def test_the_stand_in_takes_what_the_real_functions_take(load):
    stand_ins = load("simulated_cuda")
    compared = 0
    for stand_in, real in ((stand_ins._Driver, driver), (stand_ins._Nvrtc, nvrtc)):
        for name, function in vars(stand_in).items():
            if not re.match(r"cu[A-Z]|nvrtc[A-Z]", name) or not inspect.isfunction(function):
                continue
            documented = re.match(rf"{name}\((.*?)\)(\n|$)", getattr(real, name).__doc__ or "")
            assert documented, name
            wanted = 0 if not documented[1].strip() else documented[1].count(",") + 1
            assert len(inspect.signature(function).parameters) - 1 == wanted, (name, documented[1])
            compared += 1
    assert compared > 30
    assert int(driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == 1
    for name, value in vars(stand_ins._Driver.CUdevice_attribute).items():
        assert int(getattr(driver.CUdevice_attribute, name)) == value
