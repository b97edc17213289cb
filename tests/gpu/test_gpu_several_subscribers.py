"""A session beside another client that shares CUPTI (from CUDA 13.3 update 1 and driver r610 on)."""

import json

import pytest

PROGRAM = """
import ctypes, json
import collector
from collector.sources.native import NativeSource
from cuda_program import CudaProgram

found = NativeSource().probe()
if not found["features"]["several subscribers"]:
    raise SystemExit(print(json.dumps({"driver": found["driver_version"], "cupti": found["cupti_api_version"]})))

class Params(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), ("name", ctypes.c_char_p), ("holder", ctypes.c_char_p),
                ("holder_bytes", ctypes.c_size_t), ("allows_others", ctypes.c_uint64)]

cuda = CudaProgram()
cupti = ctypes.CDLL(found["cupti_path"])
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)()
handle, params = ctypes.c_void_p(), Params(40, b"other", None, 0, 1)
results = [cupti.cuptiSubscribe_v2(ctypes.byref(handle), callback, None, ctypes.byref(params))]
value, size = ctypes.c_uint8(1), ctypes.c_size_t(1)
results.append(cupti.cuptiActivitySetAttribute_v2(handle, 5, ctypes.byref(size), ctypes.byref(value)))
stream = cuda.stream()
recorded = []
for stays in (True, True, False):
    if not stays:
        results.append(cupti.cuptiUnsubscribe(handle))
    with collector.trace(strict=True) as step, collector.annotate("op"):
        cuda.launch_empty(50, stream)
        cuda.synchronize()
    recording = step.recording
    recorded.append([len(recording.kernels), sorted(set(recording.annotations_of(recording.kernels))),
                     step.ledger.losses(), "first_subscriber" in recording.environment])
print(json.dumps({"results": results, "recorded": recorded}))
"""


def test_sessions_beside_and_after_another_client(run_program, show):
    found = json.loads(run_program(PROGRAM).splitlines()[-1])
    if "driver" in found:
        pytest.skip(f"CUPTI {found['cupti']} with a driver of {found['driver']} has one subscriber")
    show(f"sessions that joined another client: {found}")
    assert found["results"] == [0, 0, 0]
    assert found["recorded"] == [[50, ["op"], [], True]] * 3
