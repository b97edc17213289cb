"""GPU time of kernels that use tensor cores by their names: ``collector.analysis.tensor_cores(step)``."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from collector.analysis.answer import Column
from collector.analysis.asked import Part, Question, question_by
from collector.analysis.duration_groups import DurationGroups, Keys
from collector.analysis.kernel_keys import kernel_names
from collector.analysis.named_question import named_question
from collector.analysis.shared_values import shared
from collector.recording.kernel_names import CACHED_NAMES, demangle

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked
    from collector.recording.recording import Recording

USES = YES, UNKNOWN, NO_EVIDENCE = "yes", "unknown", "no evidence"
_OF_XPROF = (
    *("16816", "c1688", "conv1x1", "conv2d_c1_k1", "dgrad_1x1_stride_2x2", "direct_group", "first_layer_wgrad_kernel"),
    *("h1688", "h884", "hmma", "i16832", "i8816", "s884", "s1688", "xmma_gemm", "xmma_implicit_gemm"),
    *("xmma_sparse_conv", "xmma_sparse_gemm", "xmma_warp_specialized_implicit_gemm"),
)
"""Parts of names by which XProf recognises kernels that use tensor cores, older than compute capability 9."""
_NEWER = ("wgmma", "gmma", "tensorop", "tcgen05", "utcmma", "nvjet", "flash_fwd", "flash_bwd")
_USES = (*_OF_XPROF, *_NEWER)
_AVOIDS = ("ffma", "simt")
"""Parts of names of kernels that multiply on other cores, even in a family that mostly uses tensor cores."""
_MAY_USE = (
    *("attention", "attn", "fmha", "mha_", "matmul", "cutlass", "triton", "cudnn_rnn", "wgrad", "dgrad", "einsum"),
)
"""Parts of names of kernels that multiply matrices, or that a compiler generated, without naming the units they use."""
_MAY_USE_UNLESS_WITHIN = {"gemm": ("sgemm", "dgemm", "cgemm", "zgemm"), "conv": ("convert",)}
"""More of these parts -> longer parts within which they show nothing. No two of them overlap."""

_DEFINITION = (
    "Kernels that use tensor cores, by name: yes for names with a part that libraries give to such kernels, unknown "
    "for other matrix operations and generated code, no evidence for all other names. Nothing was measured."
)
_USE = Column("tensor_cores", "text", "By name: yes, unknown or no evidence.")
_FIGURES = (
    Column("count", "count", "Number of kernels."),
    Column("total_ns", "ns", "Sum of their durations."),
    Column("share", "share", "total_ns divided by the sum of the durations of all kernels."),
)
_NAME = Column("name", "text", "Short name of the kernel.")
QUESTIONS = {
    "use": Question("tensor_cores", _DEFINITION, (_USE, *_FIGURES), summed=("count", "total_ns"), tables=("kernels",)),
    "name": Question(
        "tensor_cores", _DEFINITION, (_USE, _NAME, *_FIGURES), summed=("count", "total_ns"), tables=("kernels",)
    ),
}


@named_question(QUESTIONS, counts=("kernels",))
def tensor_cores(steps: Asked, *, by: str = "use") -> Answer:
    """GPU time of kernels that use tensor cores, by name: yes, unknown, or no evidence.

    Args:
        steps: a recording, a loaded step or an ended session, or several.
        by: ``use``, or ``name`` for each kernel, longest total first.

    Raises:
        ValueError: ``by`` has another value.
    """
    question = question_by(QUESTIONS, by, "tensor cores are")
    return question.ask(steps, lambda recording: _part(recording, by))


@lru_cache(CACHED_NAMES)
def tensor_core_use(name: str) -> str:
    """Whether the name of a kernel shows that it uses tensor cores: ``yes``, ``unknown`` or ``no evidence``.

    Args:
        name: the demangled or the recorded name; a short name may lack the decisive part.
    """
    name = name.lower()
    if any(part in name for part in _AVOIDS):
        return NO_EVIDENCE
    if any(part in name for part in _USES):
        return YES
    if any(part in name for part in _MAY_USE):
        return UNKNOWN
    for part, within in _MAY_USE_UNLESS_WITHIN.items():
        if name.count(part) > sum(map(name.count, within)):
            return UNKNOWN
    return NO_EVIDENCE


@shared
def tensor_core_uses(recording: Recording) -> npt.NDArray[np.int8]:
    """For each kernel the index in `USES` of the use that its name states."""
    kernels = recording.kernels
    uses = np.zeros(len(recording.strings), np.int8)
    for name_id in np.flatnonzero(np.bincount(kernels.name_id, minlength=1)).tolist():
        uses[name_id] = USES.index(tensor_core_use(demangle(kernels.text(name_id))))
    of_kernels: npt.NDArray[np.int8] = uses[kernels.name_id]
    return of_kernels


def tensor_core_uses_of_groups(recording: Recording, groups: DurationGroups) -> npt.NDArray[np.object_]:
    """The use that the names of the kernels of each group state; unknown where they differ."""
    uses = tensor_core_uses(recording)
    firsts, lasts = (groups.reduced(reduce, uses) for reduce in (np.minimum, np.maximum))
    return np.array(USES, object)[np.where(firsts == lasts, firsts, USES.index(UNKNOWN))]


def _part(recording: Recording, by: str) -> Part:
    kernels = recording.kernels
    uses = Keys.of_values(USES, tensor_core_uses(recording).astype(np.int64))
    names = [kernel_names(recording)] if by == "name" else []
    groups = DurationGroups([uses, *names], kernels.duration_ns)
    columns = groups.named_keys([_USE, _NAME][: len(groups.keys)]) | groups.figures()
    evidence = groups.evidence("kernels")
    if by == "name":
        return Part(columns, (), evidence)
    order = sorted(range(len(groups)), key=lambda group: USES.index(groups.keys[0][group]))
    ordered = {name: values[order] for name, values in columns.items()}
    return Part(ordered, (), [evidence[group] for group in order])
