"""The roles of CUDA's API functions."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from collector.recording.api_functions import ApiRole, have_role, plain_api_name, role_of

SIMULATED = re.findall(
    r'"(cu\w+)"', (Path(__file__).parents[2] / "native/simulator/callback_names.h").read_text(encoding="utf-8")
)
"""The functions that the simulated program calls, as CUPTI names them."""


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("cudaLaunchKernel_v7000", ApiRole.LAUNCH),
        ("cudaLaunchKernel_ptsz_v7000", ApiRole.LAUNCH),
        ("cuLaunchKernelEx", ApiRole.LAUNCH),
        ("cudaLaunchCooperativeKernelMultiDevice_v9000", ApiRole.LAUNCH),
        ("cudaGraphLaunch_v10000", ApiRole.LAUNCH),
        ("cuLaunchHostFunc", ApiRole.NONE),
        ("cudaLaunchHostFunc_v10000", ApiRole.NONE),
        ("cudaGraphAddKernelNode_v10000", ApiRole.NONE),
        ("cuStreamBeginCapture_v2", ApiRole.CAPTURE_BEGIN),
        ("cudaStreamBeginCaptureToGraph_v12030", ApiRole.CAPTURE_BEGIN),
        ("cudaStreamEndCapture_v10000", ApiRole.CAPTURE_END),
        ("cuMemAlloc_v2", ApiRole.ALLOCATION),
        ("cudaMalloc", ApiRole.ALLOCATION),
        ("cudaMallocFromPoolAsync_v11020", ApiRole.ALLOCATION),
        ("cuMemAllocHost_v2", ApiRole.NONE),
        ("cudaMallocHost_v3020", ApiRole.NONE),
        ("cudaMemcpyPeer_v4000", ApiRole.PEER_COPY),
        ("cudaMemcpyPeerAsync_v4000", ApiRole.PEER_COPY),
        ("cudaMemcpy3DPeer_ptds_v7000", ApiRole.PEER_COPY),
        ("cudaMemcpy3DPeerAsync_ptsz_v7000", ApiRole.PEER_COPY),
        ("cuMemcpyPeer_ptds", ApiRole.PEER_COPY),
        ("cuMemcpyPeerAsync", ApiRole.PEER_COPY),
        ("cuMemcpy3DPeer", ApiRole.PEER_COPY),
        ("cuMemcpy3DPeerAsync_ptsz", ApiRole.PEER_COPY),
        ("cuMemcpyDtoDAsync_v2", ApiRole.COPY),
        ("cudaMemcpy2DAsync_ptsz_v7000", ApiRole.COPY),
        ("cudaMemcpyToSymbolAsync_v3020", ApiRole.NONE),
        ("cuMemcpyHtoDAsync_v2", ApiRole.NONE),
        ("cuCtxEnablePeerAccess", ApiRole.NONE),
        ("cuMemFree_v2", ApiRole.RELEASE),
        ("cudaFreeHost_v3020", ApiRole.NONE),
        ("cudaStreamSynchronize_v3020", ApiRole.WAIT),
        ("cuCtxSynchronize", ApiRole.WAIT),
        ("cudaStreamWaitEvent_v3020", ApiRole.NONE),
        ("hipLaunchKernel", ApiRole.LAUNCH),
        ("hipExtLaunchKernel", ApiRole.LAUNCH),
        ("hipModuleLaunchKernel", ApiRole.LAUNCH),
        ("hipExtModuleLaunchKernel", ApiRole.LAUNCH),
        ("hipModuleLaunchCooperativeKernel", ApiRole.LAUNCH),
        ("hipGraphLaunch_spt", ApiRole.LAUNCH),
        ("hipLaunchHostFunc", ApiRole.NONE),
        ("hipStreamBeginCapture_spt", ApiRole.CAPTURE_BEGIN),
        ("hipStreamEndCapture", ApiRole.CAPTURE_END),
        ("hipStreamGetCaptureInfo_v2", ApiRole.NONE),
        ("hipDeviceSynchronize", ApiRole.WAIT),
        ("hipster/LaunchKernel", ApiRole.NONE),
        ("urEnqueueKernelLaunch", ApiRole.LAUNCH),
        ("urEnqueueCooperativeKernelLaunchExp", ApiRole.LAUNCH),
        ("urEnqueueKernelLaunchCustomExp", ApiRole.LAUNCH),
        ("urEnqueueUSMMemcpy", ApiRole.NONE),
        ("urQueueFinish", ApiRole.WAIT),
        ("urEventWait", ApiRole.WAIT),
        ("urEnqueueEventsWait", ApiRole.NONE),
        ("zeCommandListAppendLaunchKernel", ApiRole.LAUNCH),
        ("zeCommandListAppendLaunchCooperativeKernel", ApiRole.LAUNCH),
        ("zeCommandQueueSynchronize", ApiRole.WAIT),
        ("zeEventHostSynchronize", ApiRole.WAIT),
        ("zeCommandListAppendMemoryCopy", ApiRole.NONE),
        ("layer1/Synchronize", ApiRole.NONE),
        ("", ApiRole.NONE),
    ],
)
def test_roles(name, role):
    assert role_of(name) is role


def test_the_simulated_program_calls_what_these_names_stand_for():
    found = {role: {plain_api_name(name) for name in SIMULATED if role_of(name) is role} for role in ApiRole}
    assert {name for name in map(plain_api_name, SIMULATED) if "Launch" in name} == found[ApiRole.LAUNCH]
    assert {name for name in map(plain_api_name, SIMULATED) if "Synchronize" in name} == found[ApiRole.WAIT]
    device_memory = {
        name for name in map(plain_api_name, SIMULATED) if re.search("[Aa]lloc", name) and "Host" not in name
    }
    assert device_memory == found[ApiRole.ALLOCATION]
    assert {name for name in map(plain_api_name, SIMULATED) if "Free" in name and "Host" not in name} == (
        found[ApiRole.RELEASE]
    )


def test_rows_of_functions_with_a_role():
    strings = ["sgemm", "cudaMalloc_v3020", "cuMemAlloc_v2", "cudaFree_v3020", "cudaMallocLike()"]
    rows = np.array([3, 1, 0, 2, 4, 1, 7], np.uint32)  # no text has the last id
    assert have_role(rows, strings, ApiRole.ALLOCATION).tolist() == [False, True, False, True, False, True, False]
    names = ["hip", "hipLaunchKernel", "cuLaunchKernel"]
    assert have_role(np.arange(3), names, ApiRole.LAUNCH).tolist() == [False, True, True]
    assert have_role(rows[:0], [], ApiRole.LAUNCH).tolist() == []


@pytest.mark.parametrize(
    ("name", "plain"),
    [("cudaMemcpyAsync_ptsz_v7000", "cudaMemcpyAsync"), ("cuMemcpyHtoD_v2", "cuMemcpyHtoD"), ("cuCtx_ptds", "cuCtx"),
     ("cudaGraphLaunch", "cudaGraphLaunch"), ("", ""),
     ("cudaMemcpy_v3020_ptds", "cudaMemcpy"), ("_v2", "_v2"), ("hipStreamSynchronize_spt", "hipStreamSynchronize")],
)  # fmt: skip
def test_plain_api_names(name, plain):
    assert plain_api_name(name) == plain
