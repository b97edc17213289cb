"""The part of paths that outputs may contain."""

import pytest

from collector.text.library_path import portable, without_folders, without_home


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/usr/local/cuda-13.0/lib64/libcupti.so.13", "/usr/local/cuda-13.0/lib64/libcupti.so.13"),
        ("/opt/cuda/extras/CUPTI/lib64/libcupti.so.13", "/opt/cuda/extras/CUPTI/lib64/libcupti.so.13"),
        (
            "/home/someone/env/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13",
            "site-packages/nvidia/cu13/lib/libcupti.so.13",
        ),
        (
            "/opt/project-of-someone/.venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13",
            "site-packages/nvidia/cu13/lib/libcupti.so.13",
        ),
        ("/home/someone/build/libcupti.so.13", "libcupti.so.13"),
        ("libcupti.so.13", "libcupti.so.13"),
    ],
)
def test_a_librarys_path_has_no_folder_of_the_machines_owner(path, part):
    assert portable(path) == part


def test_texts_have_no_home_folder():
    assert without_home("cannot read /home/someone/x.json") == "cannot read ~/x.json"


@pytest.mark.parametrize(
    ("text", "reduced"),
    [
        ("cannot load /home/someone/x/libcuda.so (/a b/c: no such file)", "cannot load libcuda.so (c: no such file)"),
        ("no driver (~/lib/libcuda.so, ../lib/libcuda.so)", "no driver (libcuda.so, libcuda.so)"),
        ("tried:/tmp/a/x.so:'/tmp/b/y.so'", "tried:x.so:'y.so'"),
        ("/tmp/a/x.so or /tmp/b/y.so", "x.so or y.so"),
        ("none in CUDA_HOME, /usr/local/cuda or on the path", "none in CUDA_HOME, /usr/local/cuda or on the path"),
        ("/env/lib/python3.12/site-packages/x/y.so failed", "site-packages/x/y.so failed"),
        ("see https://docs.nvidia.com/cupti/ and/or 1 / 2", "see https://docs.nvidia.com/cupti/ and/or 1 / 2"),
    ],
)
def test_texts_have_no_folders_of_the_machines_owner(text, reduced):
    assert without_folders(text) == reduced
