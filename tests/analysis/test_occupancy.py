"""Occupancy and waves of kernels by their launch shapes."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import subprocess
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest

import collector
from collector.analysis import occupancy
from collector.analysis.device_limits import _CAPABILITIES, device_limits
from collector.analysis.occupancy import IMPOSSIBLE, UNKNOWN_DEVICE, UNKNOWN_SHAPE, kernel_occupancy
from collector.recording.schema import SCHEMA

A100 = {"compute_major": 8, "compute_minor": 0, "num_multiprocessors": 108}


def launch(build, blocks, threads, registers, shared_bytes=0, **values):
    shape = {"grid_x": blocks, "block_x": threads, "registers_per_thread": registers}
    return build.kernel("k", 0, static_shared_bytes=shared_bytes, **(shape | values))


def test_the_worked_example(build):
    build.raw("devices", **A100)
    launch(launch(build, 1000, 256, 64), 1000, 256, 64, 48 * 1024)
    rows = {row["shared_bytes"]: row for row in occupancy(build.recording())}
    plain, shared = rows[0], rows[48 * 1024]
    assert (plain["blocks_at_once"], plain["occupancy"], plain["limiter"]) == (4, 0.5, "registers")
    assert (shared["blocks_at_once"], shared["occupancy"], shared["limiter"]) == (3, 0.375, "shared memory")
    assert (round(plain["waves"], 2), round(plain["tail"], 2)) == (2.31, 0.77)
    assert plain["limits"] == "compute capability 8.0"
    assert plain["grid_occupancy"] == plain["occupancy"]


@pytest.mark.parametrize(("registers", "shared_bytes"), [(0, 0), (0, 100), (16, 0)])
def test_a_resource_that_a_kernel_does_not_use_limits_nothing(build, registers, shared_bytes):
    """A kernel before compute capability 8.0, from which on CUDA reserves shared memory in each block."""
    build.raw("devices", **{**A100, "compute_major": 7})
    (row,) = occupancy(launch(build, 1000, 32, registers, shared_bytes).recording())
    assert (row["blocks_at_once"], row["occupancy"], row["limiter"]) == (32, 0.5, "blocks")


def test_a_small_grid_fills_less(build):
    build.raw("devices", **A100)
    (row,) = occupancy(launch(build, 54, 1024, 16).recording())
    assert (row["occupancy"], row["grid_occupancy"], row["waves"]) == (1, 0.25, 0.25)


def test_recorded_limits_come_first(build):
    recorded = {
        "max_warps_per_multiprocessor": 48,
        "max_blocks_per_multiprocessor": 24,
        "max_registers_per_multiprocessor": 65536,
        "max_shared_bytes_per_multiprocessor": 100 * 1024,
    }
    build.raw("devices", **A100, **recorded)
    (row,) = occupancy(launch(build, 1, 64, 8).recording())
    assert (row["blocks_at_once"], row["occupancy"], row["limits"]) == (24, 1, "recorded")


def test_of_unknown_devices_and_shapes_nothing_is_guessed(build):
    build.raw("devices", **A100).raw("devices", device_id=1, compute_major=4, compute_minor=9)
    launch(build, 4, 256, 32, device_id=1, name_id=0)
    launch(build, 4, 256, 32, device_id=2)
    launch(build, 0, 256, 32).kernel("k", 0, block_x=0)
    launch(build, 4, 1024, 255)
    answer = occupancy(build.recording())
    assert answer.totals["count"] == 5
    found = sorted((row["device_id"], row["limits"], np.isnan(row["occupancy"])) for row in answer)
    assert found == sorted(
        [
            (0, UNKNOWN_SHAPE, True),
            (0, UNKNOWN_SHAPE, True),
            (0, IMPOSSIBLE, True),
            (1, UNKNOWN_DEVICE, True),
            (2, UNKNOWN_DEVICE, True),
        ]
    )


def test_without_the_number_of_multiprocessors(build):
    build.raw("devices", compute_major=9)
    (row,) = occupancy(launch(build, 5, 256, 32).recording())
    assert (row["occupancy"], np.isnan(row["waves"]), np.isnan(row["grid_occupancy"])) == (1, True, True)


def test_a_recorded_trace_of_pytorch(load_trace):
    answer = occupancy(load_trace("torch_tutorial/h100_transformer_before.json.gz"))
    assert set(answer["limits"]) == {"compute capability 9.0"}
    assert not np.isnan(answer["waves"]).any()
    assert set(occupancy(load_trace("hta/mi250_minitoy.json.gz"))["limits"]) == {UNKNOWN_DEVICE}


def test_devices_that_are_none(tmp_path):
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "args": {"device": 0, "stream": 7}}
    for stated in (7, [7], [{"id": -1}, {"id": 2**70}, {"id": 0, "computeMajor": "x", "name": None}], {"id": 0}):
        path = tmp_path / "trace.json"
        path.write_text(json.dumps({"deviceProperties": stated, "traceEvents": [kernel]}))
        (row,) = occupancy(collector.load(path))
        assert row["limits"] == UNKNOWN_DEVICE


def test_sizes_that_no_device_has(build):
    build.raw("devices", **A100)
    sizes = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers_per_thread")
    sizes += ("static_shared_bytes", "dynamic_shared_bytes")
    build.kernel("k", 0, **{name: np.iinfo(np.dtype(SCHEMA["kernels"][name])).max for name in sizes})
    assert occupancy(build.recording()).totals["count"] == 1


def test_the_kernels_that_a_row_is_made_of(build):
    for blocks in (1, 2, 1, 2, 1):
        launch(build, blocks, 32, 8)
    answer = occupancy(build.recording())
    assert [
        (row["grid"], evidence["kernels"].tolist()) for row, evidence in zip(answer, answer.evidence, strict=True)
    ] == [
        ("1,1,1", [0, 2, 4]),
        ("2,1,1", [1, 3]),
    ]


@pytest.mark.slow
def test_what_kineto_recorded(gpu_traces, build):
    """Kineto's own figures; it writes 0 for kernels with more than 48 KiB of shared memory, which ours are not."""
    equal, others = 0, 0
    for path in sorted(gpu_traces.rglob("*.json.gz")):
        if not path.match("hta/*") and not path.match("kineto/*") and not path.match("torch_tutorial/*"):
            continue
        trace = json.loads(gzip.decompress(path.read_bytes()), strict=False)
        if not isinstance(trace, dict) or not trace.get("deviceProperties"):
            continue
        made = type(build)()
        for device in trace["deviceProperties"]:
            made.raw(
                "devices",
                name_id=made.text("GPU"),
                device_id=device["id"],
                compute_major=device["computeMajor"],
                compute_minor=device["computeMinor"],
                num_multiprocessors=device["numSms"],
                max_warps_per_multiprocessor=device["maxThreadsPerMultiprocessor"] // 32,
                max_registers_per_multiprocessor=device.get("regsPerMultiprocessor", 0),
                max_shared_bytes_per_multiprocessor=device.get("sharedMemPerMultiprocessor", 0),
            )
        limits = device_limits(made.recording())
        for event in trace["traceEvents"]:
            arguments = event.get("args", {})
            stated = arguments.get("est. achieved occupancy %")
            if stated is None:
                continue
            own = limits[arguments["device"]]
            blocks, threads, registers, shared = (
                np.array([value], np.int64)
                for value in (
                    np.prod(arguments["grid"]),
                    np.prod(arguments["block"]),
                    arguments["registers per thread"],
                    arguments["shared memory"],
                )
            )
            at_once = np.min(list(own.blocks_at_once(threads, registers, shared).values()), axis=0)
            found = kernel_occupancy(own, threads, blocks, at_once)["grid_occupancy"][0]
            if int(Decimal(float(np.float32(found))).scaleb(2).to_integral_value(ROUND_HALF_UP)) == stated:
                equal += 1
            else:
                others += 1
                assert (stated, shared[0] > 48 * 1024) == (0, True)
    assert (equal, equal + others) == (58_448, 60_205)


ORACLE = r"""
#include <cstdio>
#include "cuda_occupancy.h"
int main() {
  int major, minor, warps, shared_sm, reserved, threads, registers, shared;
  while (std::scanf("%d %d %d %d %d %d %d %d", &major, &minor, &warps, &shared_sm, &reserved, &threads, &registers,
                    &shared) == 8) {
    cudaOccDeviceProp device;
    device.computeMajor = major;
    device.computeMinor = minor;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = 32 * warps;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 49152;
    device.sharedMemPerMultiprocessor = shared_sm;
    device.numSms = 1;
    device.sharedMemPerBlockOptin = shared_sm - reserved;
    device.reservedSharedMemPerBlock = reserved;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = 0;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = shared;
    cudaOccDeviceState state;
    cudaOccResult result;
    auto status = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, shared);
    std::printf("%d\n", status == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -1);
  }
}
"""


@pytest.mark.slow
def test_nvidia_s_own_formula_gives_the_same(cuda_wheels, tmp_path, build):
    (tmp_path / "oracle.cpp").write_text(ORACLE)
    includes = [f"-I{folder}" for folder in cuda_wheels.include_folders(list(cuda_wheels.RELEASES)[-1])]
    subprocess.run(["c++", "-o", "oracle", "oracle.cpp", *includes], cwd=tmp_path, check=True)
    for number, (major, minor) in enumerate(_CAPABILITIES):
        build.raw("devices", name_id=build.text("GPU"), device_id=number, compute_major=major, compute_minor=minor)
    limits = device_limits(build.recording())
    draw = random.Random(7)
    shapes = [
        (draw.randint(1, 1024), draw.randint(1, 255), draw.choice([0, draw.randint(0, 49152), draw.randint(0, 233472)]))
        for _ in range(2000)
    ]
    shapes += itertools.product((32, 96, 128, 1024), (16, 32, 64, 255), (0, 1024, 49152))
    threads, registers, shared = np.array(shapes, np.int64).T
    for own, capability in zip(limits.values(), _CAPABILITIES, strict=True):
        asked = "".join(
            "{} {} {} {} {} {} {} {}\n".format(
                *capability, own.warps, own.shared_bytes, own.reserved_shared_bytes, *shape
            )
            for shape in shapes
        )
        told = subprocess.run([tmp_path / "oracle"], input=asked, capture_output=True, text=True, check=True)
        theirs = np.array(told.stdout.split(), np.int64)
        ours = np.min(list(own.blocks_at_once(threads, registers, shared).values()), axis=0)
        can_run = theirs > 0  # it refuses what a launch would refuse
        assert can_run.sum() > 500
        assert np.array_equal(ours[can_run], theirs[can_run]), capability
