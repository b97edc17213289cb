"""Tensor cores by the names of kernels."""

from __future__ import annotations

import pytest
from reference import plain_kernel_names

import collector
from collector.analysis import kernels, tensor_cores
from collector.analysis.questions import QUESTIONS
from collector.analysis.tensor_cores import tensor_core_use
from collector.testing import SimulatedGpu


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("volta_h884gemm_128x64_ldg8_nn", "yes"),
        ("turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_small_nhwc_tn_v1", "yes"),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", "yes"),
        ("cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align1", "yes"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_gmma", "yes"),
        ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "yes"),
        ("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4> >", "yes"),
        ("cutlass3x_sm100_tcgen05_f16", "yes"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_ffma_aligna4_alignc4", "no evidence"),
        ("cutlass_80_simt_sgemm_128x64_8x5_nn_align1", "no evidence"),
        ("volta_sgemm_128x64_nn", "no evidence"),
        ("void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float> >", "no evidence"),
        ("void convert_kernel<float>", "no evidence"),
        ("triton_poi_fused_add_0", "unknown"),
        ("void cutlass::gemm_nn_128x128<float>(float*, float*)", "unknown"),
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm80", "unknown"),
        ("cublasLt::splitKreduce_kernel", "no evidence"),
    ],
)
def test_names(name, use):
    assert tensor_core_use(name) == use


def test_share_of_gpu_time(build):
    build.kernel("volta_h884gemm_64x64_nn", 0, 700).kernel("triton_0", 1000, 200).kernel("triton_1", 2000, 50)
    build.kernel("add", 3000, 50)
    answer = tensor_cores(build.recording())
    assert [tuple(row.values()) for row in answer] == [
        ("yes", 1, 700, 0.7),
        ("unknown", 2, 250, 0.25),
        ("no evidence", 1, 50, 0.05),
    ]
    assert answer.totals == {"count": 4, "total_ns": 1000}
    assert "by name" in answer.definition
    assert [rows["kernels"].tolist() for rows in answer.evidence] == [[0], [1, 2], [3]]
    by_name = tensor_cores(build.recording(), by="name")
    assert by_name["name"].tolist() == ["volta_h884gemm_64x64_nn", "triton_0", "add", "triton_1"]


def test_kernels_say_whether_they_use_tensor_cores(build):
    build.kernel("volta_h884gemm_64x64_nn", 0, 700).kernel("triton_0", 1000, 200).kernel("add", 3000, 50)
    build.kernel("_ZN1a4gemmEv", 4000, 40).kernel("_ZN6hmma_b4gemmEv", 5000, 30)
    rows = {row["name"]: row["tensor_cores"] for row in kernels(build.recording())}
    assert rows == {"volta_h884gemm_64x64_nn": "yes", "triton_0": "unknown", "add": "no evidence", "gemm": "unknown"}
    for by in QUESTIONS["kernels"].by:
        answer = kernels(build.recording(), by=by)
        spent = dict.fromkeys(("yes", "unknown", "no evidence"), 0)
        for row in answer:
            spent[row["tensor_cores"]] += row["total_ns"]
        assert spent["yes"] >= 700
        assert spent["no evidence"] == 50
    (name,) = {
        row["tensor_cores"] for row in kernels(build.recording(), by="whole_name") if "hmma" in row["whole_name"]
    }
    assert name == "yes"


def test_nothing_and_what_they_cannot_be_counted_by(build):
    assert len(tensor_cores(build.recording())) == 0
    with pytest.raises(ValueError, match="counted by use, name"):
        tensor_cores(build.recording(), by="stream")


def test_kernels_of_recorded_traces_add_up(load_trace, counts):
    name = "torch_tutorial/h100_transformer_before.json.gz"
    for by in ("use", "name"):
        answer = tensor_cores(load_trace(name), by=by)
        truth = counts[name]["gpu"]
        assert answer.totals == {"count": truth["kernel_count"], "total_ns": truth["kernel_sum_ns"]}
        assert answer["tensor_cores"].tolist().count("yes") >= 1


@pytest.mark.simulator
def test_each_name_is_searched_once_however_many_steps_run_its_kernel():
    """A comparison asks for the kernels of every step."""
    steps = []
    for _ in range(3):
        with SimulatedGpu() as gpu, collector.trace(strict=True) as step:
            for name in ("sgemm", "relu", "sgemm"):
                gpu.launch(name)
            gpu.synchronize()
        steps.append(step.recording)
    tensor_core_use.cache_clear()
    assert len(kernels(steps)) == 6
    assert tensor_core_use.cache_info().misses == 2


def test_the_use_is_that_of_regular_expressions_which_ignore_case():
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    parts = ["ffma", "simt", "hmma", "h884", "conv1x1", "xmma_gemm", "tensorop", "cutlass", "wgrad", "attn", "mha_"]
    parts += ["gemm", "s", "d", "c", "z", "conv", "ert", "convert", "CONV", "Gemm", "_", "x", "1", "::"]
    pieces = st.lists(st.sampled_from(parts), max_size=6).map("".join)

    @hypothesis.given(st.one_of(pieces, st.text(st.characters(codec="ascii"), max_size=30)))
    def check(name):
        assert tensor_core_use(name) == plain_kernel_names.tensor_core_use(name)

    check()
