"""Kernel names: demangled, and cut to the function's own name."""

from __future__ import annotations

import gzip
import json

import pytest

pytest.importorskip("hypothesis")

from hypothesis import given
from hypothesis import strategies as st
from reference import plain_kernel_names

from collector.recording import kernel_names as names
from collector.recording.kernel_names import demangle, short_name

DECLARATIONS = {
    "sgemm": "sgemm",
    "ampere_sgemm_128x64_nn": "ampere_sgemm_128x64_nn",
    "triton_poi_fused_add_0d1d2d3de": "triton_poi_fused_add_0d1d2d3de",
    "loop_add_fusion.1": "loop_add_fusion.1",
    "add(float*, int)": "add",
    "void add<float>(float*, int)": "add<float>",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)": "vectorized_elementwise_kernel<4, "
    "CUDAFunctor_add<float>, array<char*, 3>>",
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, 2, 128>(float*)": "CatArrayBatchedCopy<"
    "float, 2, 128>",
    "(anonymous namespace)::softmax_warp_forward(float*)": "softmax_warp_forward",
    "void at::native::unrolled_kernel<at::native::direct_copy(at::TensorIteratorBase&)::"
    "{lambda()#3}::operator()() const::{lambda(float)#1}, OffsetCalculator<1, unsigned int> >(int)": "unrolled_kernel<"
    "direct_copy.lambda3.lambda1[float], OffsetCalculator<1, unsigned int>>",
    "void at::native::unrolled_kernel<at::native::direct_copy(at::TensorIteratorBase &)::[lambda() (instance 3)]"
    "::operator ()() const::[lambda(float) (instance 1)], OffsetCalculator<(int)1, unsigned int>>(int)": "unrolled_"
    "kernel<direct_copy.lambda3.lambda1[float], OffsetCalculator<1, unsigned int>>",
    "void cutlass::Kernel<cutlass_80_wmma_tensorop_s161616gemm_f16_16x16_128x2_nn_align8>"
    "(cutlass_80_wmma_tensorop_s161616gemm_f16_16x16_128x2_nn_align8::Params)": "Kernel<"
    "cutlass_80_wmma_tensorop_s161616gemm_f16_16x16_128x2_nn_align8>",
    "void cutlass::device_kernel<flash::enable_sm90<flash::Fwd<(bool)1, cute::tuple<cute::C<(8>>2)> > > > >"
    "(flash::Fwd::Params)": "device_kernel<enable_sm90<Fwd<true, tuple<C<(8>>2)>>>>>",
    "void cub::CUB_200700_NS::ReduceKernel<cub::Policy<(cub::Alg)0, 4>, int, float (*)(float)>(int)": "ReduceKernel<"
    "Policy<0, 4>, int, float (*)(float)>",
    "void cub::DeviceScan<cub::Policy<long, int>::Policy800, int>(int)": "DeviceScan<Policy<long, int>.Policy800, int>",
    "decltype(auto) f<int>(int)": "f<int>",
    "decltype((a)->b) pick<int>(int*)": "pick<int>",
    "std::enable_if<(4 > 2), void>::type kernel<4>(int)": "kernel<4>",
    "Functor::operator()(int) const": "operator()",
    "void Functor::operator()<int>(int) const": "operator()<int>",
    "bool ns::operator< <int>(T<int>, T<int>)": "operator<<int>",
    "ns::operator<<(std::ostream&, int)": "operator<<",
    "ns::operator>>(std::istream&, int)": "operator>>",
    "T::operator->() const": "operator->",
    "ns::operator()(int)::{lambda(float)#1}::operator()(float) const": "operator()",
    "Wrapper::operator bool() const": "operator bool",
    "void run<int>(int) [clone .constprop.0]": "run<int>",
    "step(int) (.cold)": "step",
    "void add_kernel[abi:v1](Array<float, 1, C, mutable, aligned>)": "add_kernel",
    "cudapy::__main__::add[abi:v1][abi:cw51cXTLSUwv1sCUt9Uw](Array<float, 1, C, mutable, aligned>, int)": "add",
    "main::'lambda'(int)::run(int)": "run",
    "__nv_static_51__38_tmpxft::fill(int)": "fill",
    "void ns::f<ns::g<&ns::h(int)>>(int)": "f<g<&h(int)>>",
    "my:kernel": "my_kernel",
    "a::b:c": "b_c",
    "memory copy": "memory copy",
    "ns::plain": "plain",
    "::global(int)": "global",
}


@pytest.mark.parametrize("declaration", DECLARATIONS, ids=range(len(DECLARATIONS)))
def test_the_short_name_is_the_functions_own_with_its_template_arguments(declaration):
    assert short_name(declaration) == DECLARATIONS[declaration]


def test_long_template_arguments_are_cut_and_still_distinguish_kernels():
    declared = "void cublas::gemv<{}, cublas::Params<float const*, float const*, float*, float, double, {}>>(int)"
    kernels = [declared.format(", ".join(["float"] * 10), last) for last in range(100)]
    shortened = {short_name(kernel) for kernel in kernels}
    assert len(shortened) == len(kernels)
    assert max(map(len, shortened)) == len("gemv<>") + 80
    assert all(name.startswith("gemv<float, float") and name.endswith(">") for name in shortened)


RECORDED = [
    "hta/a100_rank0of2_nccl_metadata.json.gz",
    "hta/a100_alexnet.json.gz",
    "hta/mi250_minitoy.json.gz",
    "torch_tutorial/h100_transformer_before.json.gz",
]


@pytest.mark.parametrize("name", RECORDED)
def test_no_two_kernels_of_a_recorded_trace_share_a_short_name(name, shared):
    events = json.loads(gzip.decompress((shared / "data" / "gpu_traces" / name).read_bytes()))["traceEvents"]
    declarations = {event["name"] for event in events if event.get("cat") == "kernel"}
    assert len(declarations) > 5
    assert len({short_name(declaration) for declaration in declarations}) == len(declarations)


MANGLED = {
    "_Z3addPfi": ("add(float*, int)", "add"),
    "_Z3addIfEvPT_i": ("void add<float>(float*, int)", "add<float>"),
    "_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi": (
        "void at::native::vectorized_elementwise_kernel<4>(int)",
        "vectorized_elementwise_kernel<4>",
    ),
    "_ZN12_GLOBAL__N_17softmaxEPf": ("(anonymous namespace)::softmax(float*)", "softmax"),
    "_ZSt4sortIPiEvT_S1_": ("void std::sort<int*>(int*, int*)", "sort<int*>"),
    "_ZL4fillPfi": ("fill(float*, int)", "fill"),
}


@pytest.mark.parametrize("name", MANGLED)
def test_mangled_names_are_demangled(name):
    assert (demangle(name), short_name(name)) == MANGLED[name]


@pytest.mark.parametrize("name", MANGLED)
def test_short_names_are_found_without_a_demangler(name, monkeypatch):
    monkeypatch.setattr(names, "_demangler", lambda: None)
    names.demangle.cache_clear()
    names.short_name.cache_clear()
    try:
        assert demangle(name) == name
        own, is_template, _ = MANGLED[name][1].partition("<")
        assert short_name(name) == (f"{own}<{name.partition(own + 'I')[2]}>" if is_template else own)
    finally:
        names.demangle.cache_clear()
        names.short_name.cache_clear()


@pytest.mark.parametrize("name", ["", "_Z", "_Znonsense", "_ZN3fo", "sgemm", "_Z3ad", "\udcff_Z", "naïve"])
def test_what_cannot_be_demangled_stays_as_it_is(name):
    assert demangle(name) == name


def test_a_name_of_a_few_bytes_that_stands_for_gigabytes_stays_mangled():
    depth = 34
    parts = "".join(f"S{digit}_E" for digit in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:depth])
    name = "_Z1f1bI" + "S_I" * (depth - 1) + "1a" + parts
    assert demangle(name) == name
    assert len(short_name(name)) < 100


PIECES = st.lists(
    st.sampled_from(
        [
            "::",
            "<",
            ">",
            "(",
            ")",
            "{",
            "}",
            "[",
            "]",
            " ",
            "operator",
            "->",
            ",",
            "f",
            "kernel",
            "_ZN",
            "3abc",
            "(anonymous namespace)",
            "operator()",
            "operator<",
            ">>",
            "[abi:v1]",
            ":",
            "&",
            "*",
            "const",
            "'lambda'",
            "5",
        ]
    ),
    max_size=25,
).map("".join)


@pytest.mark.medium
@given(st.one_of(st.text(max_size=80), PIECES))
def test_any_text_has_a_short_name_that_can_stand_in_a_node_name(text):
    short = short_name(text)
    assert short
    assert ":" not in short
    assert short == short.strip()


DECLARED = st.lists(
    st.sampled_from(
        [
            *(
                "void ",
                "f",
                "ab",
                "::",
                "<",
                ">",
                "(",
                ")",
                "[",
                "]",
                "{",
                "}",
                " ",
                "  ",
                "\t",
                ", ",
                "*",
                "&",
                "&&",
                "->",
            ),
            *("operator", "operator ", "operator()", "operator bool", "::operator ()", "const", " const", "const::"),
            *(" const::", " volatile", " noexcept", " requires C<T> ", "[clone .a]", " [with T = int]", " (.cold)"),
            *("(anonymous namespace)", "<unnamed>", "[abi:v1]", "1ul", "9", "(bool)1", "(int)-3", "_"),
            *("{lambda(float)#1}", "[lambda() (instance 3)]"),
        ]
    ),
    max_size=14,
).map(lambda pieces: "x" + "".join(pieces))


@given(DECLARED)
def test_a_short_name_is_that_of_the_readable_search_for_it(text):
    own, arguments = plain_kernel_names.function(text)
    written = plain_kernel_names.whole_arguments(arguments)
    if len(written) <= 80:
        expected = (f"{own}<{written}>" if arguments else own).replace(":", "_").strip() or "unknown"
        assert short_name(text) == expected


IDENTIFIER = st.from_regex(r"[a-z_][a-z0-9_]{0,12}", fullmatch=True).filter(
    lambda word: word not in ("operator", "const", "volatile", "noexcept", "requires", "void")
)
ARGUMENT = st.recursive(
    st.one_of(IDENTIFIER, st.integers(0, 99).map(str), IDENTIFIER.map(lambda word: word + "*")),
    lambda inner: st.one_of(
        st.tuples(IDENTIFIER, st.lists(inner, max_size=3)).map(lambda pair: f"{pair[0]}<{', '.join(pair[1])}>"),
        st.tuples(IDENTIFIER, inner).map(lambda pair: f"{pair[0]}::{pair[1]}"),
        inner.map(lambda text: f"(anonymous namespace)::{text}"),
        st.tuples(inner, inner).map(lambda pair: f"{pair[0]} (*)({pair[1]})"),
        inner.map(lambda text: f"f({text})::{{lambda({text})#1}}"),
    ),
    max_leaves=6,
)


@pytest.mark.medium
@given(
    scope=st.lists(st.one_of(IDENTIFIER, st.just("(anonymous namespace)"), ARGUMENT.map("s<{}>".format)), max_size=3),
    name=IDENTIFIER,
    arguments=st.lists(ARGUMENT, max_size=3),
    parameters=st.lists(ARGUMENT, max_size=3),
    is_template=st.booleans(),
    suffix=st.sampled_from(["", " const", " [clone .part.0]", " (.cold)"]),
)
def test_any_declaration_gives_back_the_name_it_was_made_of(scope, name, arguments, parameters, is_template, suffix):
    qualified = "::".join([*scope, name])
    template = f"<{', '.join(arguments)}>" if is_template else ""
    result = "void " if is_template else ""
    short = short_name(f"{result}{qualified}{template}({', '.join(parameters)}){suffix}")
    if arguments and is_template:
        assert short.startswith(f"{name}<")
        assert short.endswith(">")
    else:
        assert short == name


HOSTILE = (
    "<",
    ">",
    "()",
    "<>",
    "a::",
    "f(",
    "operator",
    "operator ",
    " ",
    "&",
    "const ",
    "[abi:",
    "[clone ",
    "requires ",
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_long_hostile_name_takes_no_longer_than_its_length_warrants(piece):
    text = piece * (100_000 // len(piece))
    for name in (text, f"{text}x", f"{text}>", f"{text}]", f"f<{text}>(int)"):
        assert short_name(name)


def test_a_mangled_name_may_state_a_length_of_more_digits_than_python_converts():
    assert short_name("_Z" + "9" * 5000) == "_Z" + "9" * 5000
