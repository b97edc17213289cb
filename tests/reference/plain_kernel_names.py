"""Short names of kernels and their use of tensor cores, by regular expressions that are slow on long names."""

from __future__ import annotations

import re

_OPERATOR = re.compile(r"\boperator\s*(?:\(\)|\[\]|<=>|<<=|>>=|->\*|<<|>>|<=|>=|->|<|>)")
_ANONYMOUS = re.compile(r"\((?:anonymous namespace|anonymous class|anonymous)\)|<unnamed>|\[abi:[^\]]*\]")
_SUFFIX = re.compile(
    r"\s*(?:\[clone [^\]]*\]|\[with [^\]]*\]|\(\.[\w.]+\)|\b(?:const|volatile|noexcept|requires .*)|&&?)$", re.DOTALL
)
_OPEN = {")": "(", ">": "<", "]": "[", "}": "{"}
_NO_SCOPE = re.compile(r"\((?:anonymous namespace|anonymous class|anonymous)\)::|<unnamed>::|\[abi:[^\]]*\]")
_CAST = re.compile(r"\((?!bool\))[A-Za-z_][\w:]*(?: (?:int|long|short|char))*\)(?=-?\d)")
_NUMBER = re.compile(r"\b(\d+)(?:u|l|ul|ll|ull)\b", re.IGNORECASE)
_LAMBDA = re.compile(r"\{lambda\(([^(){}]*)\)#(\d+)\}|\[lambda\(([^()[\]]*)\) \(instance (\d+)\)\]")
_CALL = re.compile(r"(?:::)?\boperator ?\(\)(?=\()")
_NAMESPACES = re.compile(r"(?<![\w>)}\]])(?:[A-Za-z_]\w*::)+")
_AFTER_PARAMETERS = re.compile(r"(?: (?:const|volatile))*::")


def function(name: str) -> tuple[str, str]:
    """The unqualified name in a demangled declaration, and its template arguments."""
    hidden = _ANONYMOUS.sub(lambda match: "\x00" * len(match[0]), name.rstrip())
    hidden = _OPERATOR.sub(lambda match: "operator" + "\x00" * (len(match[0]) - 8), hidden)
    hidden = hidden.replace("->", "\x00\x00")
    end = len(hidden)
    while (match := _SUFFIX.search(hidden, 0, end)) and match.start():
        end = match.start()
    arguments = ""
    for bracket in ")>":
        if hidden[:end].endswith(bracket):
            start = _opening(hidden, end - 1)
            if start > 0:
                arguments = name[start + 1 : end - 1] if bracket == ">" else ""
                end = len(hidden[:start].rstrip())
    begin = _beginning(hidden, end) if end < len(name) else hidden.rfind("::") + 2 if "::" in hidden else 0
    return re.sub(r"\[abi:[^\]]*\]", "", name[begin:end]), arguments


def _opening(text: str, closing: int) -> int:
    expected: list[str] = []
    for at in range(closing, -1, -1):
        letter = text[at]
        if letter in _OPEN and not (letter == ">" and expected and expected[-1] in "([{"):
            expected.append(_OPEN[letter])
        elif expected and letter == expected[-1]:
            expected.pop()
            if not expected:
                return at
    return -1


def _beginning(text: str, end: int) -> int:
    conversion = re.search(r"\boperator [^<>():]*$", text[:end])
    if conversion:
        return conversion.start()
    at = end - 1
    while at >= 0:
        letter = text[at]
        if letter in _OPEN:
            start = _opening(text, at)
            if start < 0:
                return at + 1
            at = start
        elif letter in ": \t\n*&":
            return at + 1
        at -= 1
    return 0


def whole_arguments(arguments: str) -> str:
    """Template arguments without namespaces, casts and parameters of enclosing functions, however long."""
    text = _NO_SCOPE.sub("", arguments)
    text = text.replace("(bool)1", "true").replace("(bool)0", "false")
    text = _NUMBER.sub(r"\1", _CAST.sub("", text))
    text = _LAMBDA.sub(_lambda, text)
    text = _without_outer_parameters(_CALL.sub("", text))
    return re.sub(r"\s*(?=[>*&])", "", _NAMESPACES.sub("", text).replace("::", ".")).strip()


def _lambda(found: re.Match[str]) -> str:
    parameters = found[1] or found[3]
    return f"lambda{found[2] or found[4]}" + (f"[{parameters}]" if parameters else "")


def _without_outer_parameters(text: str) -> str:
    kept: list[str] = []
    opened: list[int] = []
    at = 0
    while at < len(text):
        letter = text[at]
        at += 1
        if letter == "(":
            opened.append(len(kept))
        kept.append(letter)
        if letter == ")" and opened:
            start = opened.pop()
            following = _AFTER_PARAMETERS.match(text, at)
            if following is not None:
                kept[start:] = "."
                at = following.end()
    return "".join(kept)


_USES = re.compile(
    "16816|c1688|conv1x1|conv2d_c1_k1|dgrad_1x1_stride_2x2|direct_group|first_layer_wgrad_kernel|h1688|h884|hmma|i16832"
    "|i8816|s884|s1688|xmma_gemm|xmma_implicit_gemm|xmma_sparse_conv|xmma_sparse_gemm"
    "|xmma_warp_specialized_implicit_gemm|wgmma|gmma|tensorop|tcgen05|utcmma|nvjet|flash_fwd|flash_bwd",
    re.IGNORECASE,
)
_MAY_USE = re.compile(
    r"(?<![sdcz])gemm|conv(?!ert)|attention|attn|fmha|mha_|matmul|cutlass|triton|cudnn_rnn|wgrad|dgrad|einsum",
    re.IGNORECASE,
)


def tensor_core_use(name: str) -> str:
    """Whether a name shows that its kernel uses tensor cores."""
    if re.search("ffma|simt", name, re.IGNORECASE):
        return "no evidence"
    if _USES.search(name):
        return "yes"
    return "unknown" if _MAY_USE.search(name) else "no evidence"
