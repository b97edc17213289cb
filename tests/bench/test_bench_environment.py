"""The environment in a report, without folders, hosts, users, command lines or variables."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from properties import examples

pytest.importorskip("scipy")

from collector import bench
from collector.bench.documents import as_csv, as_markdown
from collector.bench.environment import _libraries, environment, without_home, without_places
from collector.bench.gpu import Host
from collector.bench.plot import page


def test_of_the_program_and_the_system_only_names_and_versions_are_kept(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/home/alice/secret/bench_it.py", "--token=abc"])
    about = environment(Host(), {"cupti_path": "/home/alice/env/lib/python3.12/site-packages/nvidia/libcupti.so.12"})
    assert about["program"] == "bench_it.py"
    assert about["cupti_path"] == "site-packages/nvidia/libcupti.so.12"
    system, version = about["platform"].split()
    assert system == platform.system()
    assert platform.release().startswith(version)
    assert version.replace(".", "").isdecimal()


@pytest.mark.medium
@pytest.mark.parametrize(
    ("stated", "kept"), [("2.14.1+cu130", "2.14.1+cu130"), ("2.14.10", "2.14.1"), (None, "2.14.1")]
)
def test_the_build_of_a_library_is_kept_where_only_the_module_states_it(monkeypatch, stated, kept):
    _libraries.cache_clear()
    monkeypatch.setattr("importlib.metadata.version", {"torch": "2.14.1"}.__getitem__)
    monkeypatch.setattr("importlib.metadata.PackageNotFoundError", KeyError)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__=stated))
    try:
        assert environment(Host(), {})["libraries"] == {"torch": kept}
    finally:
        _libraries.cache_clear()


@pytest.mark.medium
def test_no_document_identifies_the_machine(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["/home/alice/secret/bench_it.py", "--token=abcdef"])
    monkeypatch.setenv("COLLECTOR_TEST_SECRET", "a-secret-variable")

    def broken():
        raise FileNotFoundError(2, "No such file", "/home/alice/secret/weights.bin")

    def also_broken():
        raise OSError(f"{Path.home()}/data: gone")

    report = bench.compare(
        {"good": lambda: sum(range(100)), "broken": broken, "also": also_broken},
        gpu=Host(), clock="wall", max_rounds=30, min_rounds=30,
    )  # fmt: skip
    report.save(tmp_path / "r.json")
    documents = [(tmp_path / "r.json").read_text(), as_markdown(report), as_csv(report), page(report), str(report)]
    for text in documents:
        for private in ("alice", "token", "a-secret-variable", platform.node(), str(Path.cwd()), "/home/"):
            assert private not in text
    assert "~/secret/weights.bin" in report.failures["broken"]
    assert "~/data: gone" in report.failures["also"]


def test_reports_of_compared_programs_do_not_identify_the_machine():
    with pytest.raises(bench.BenchmarkError):
        bench.compare_processes({"gone": bench.Process(["/home/alice/bin/gone"])}, {"time": "ns"}, rounds=1)
    report = bench.compare_processes(
        {
            "good": bench.Process([sys.executable, "-c", 'print(\'{"time": 5, "time: from": "/home/alice/x"}\')']),
            "gone": bench.Process(["/home/alice/bin/gone"]),
        },
        {"time": "ns"},
        rounds=1,
    )
    assert "'~/bin/gone'" in report.failures["time: gone"]
    assert report.comparison.arms["good"].facts == {"from": "~/x"}


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/usr/local/cuda-12.4/lib64/libcupti.so.12", "/usr/local/cuda-12.4/lib64/libcupti.so.12"),
        ("/data/alice/lib/libcupti.so.12", "libcupti.so.12"),
        ("/home/a/dist-packages/nvidia/lib/libcupti.so", "dist-packages/nvidia/lib/libcupti.so"),
        ("libcupti.so", "libcupti.so"),
        ("", ""),
    ],
)
def test_of_a_library_the_part_is_kept_that_is_the_same_everywhere(path, kept):
    assert without_places({"cupti_path": path}) == {"cupti_path": kept}


@pytest.mark.parametrize(
    ("system", "kept"),
    [
        ("Linux-6.1.0-21-amd64-x86_64-with-glibc2.36", "Linux 6.1.0"),
        ("Linux-5.15.0-1053-alices-host-x86_64", "Linux 5.15.0"),
        ("Linux 6.8.0", "Linux 6.8.0"),
        ("", ""),
    ],
)
def test_of_a_system_its_kernels_version_is_kept(system, kept):
    assert without_places({"platform": system}) == {"platform": kept}


@settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(["program", "cupti_path", "platform", "gpu"]), st.text() | st.none()))
def test_what_was_cut_down_once_stays_as_it_is(about):
    once = without_places(about)
    assert once.keys() == about.keys()
    assert without_places(once) == once


def test_a_word_that_only_begins_like_a_home_is_kept():
    assert without_home("/rooted /homes/x, /root, '/root/a' and /Users/Al/b") == "/rooted /homes/x, ~, '~/a' and ~/b"
