"""The ledger: launches and records that one recording saw, kept and lost, with the reasons."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from collector.recording.schema import TableCounts
from collector.recording.shed_kinds import shed_lines
from collector.text.html_tables import html_line, html_table
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from collector.protos import Provenance


@dataclass(frozen=True)
class Ledger(TableCounts):
    """The account of one recording. Every figure is a count unless its name contains bytes or ns."""

    launches_seen: int = 0
    """Kernel and graph launches called by the host: distinct correlation ids (runtime and driver share one)."""
    launches_matched: int = 0
    """Launches to which at least one kept or set-apart activity belongs."""
    launches_failed: int = 0
    """Launches whose call returned an error, so that nothing ran."""
    launches_captured: int = 0
    """Launches made while a CUDA graph was being captured; they run when the graph is launched."""
    launches_without_kernel: int = 0
    """Launches that succeeded but have no recorded activity."""
    kernels_without_launch: int = 0
    """Kernels whose launch was not recorded, although API calls were."""
    launches_cut: int = 0
    """Launches at the edges of a part of a longer recording whose call or activities are in another part."""
    rows_forgotten: int = 0
    """Rows of earlier parts that the recording has removed to keep within its size or time."""
    rows_missing: int = 0
    """Rows of segments of the journal that are missing or damaged."""
    peer_copies_unrecorded: int = 0
    """Calls that copied, perhaps between GPUs, without a record, while the kind ``peer_copies`` was not recorded."""
    correlations_unmatched: int = 0
    """External correlation records of this package whose id belongs to no known annotation."""
    graphs_before_trace: int = 0
    """CUDA graphs that were captured before the trace: the annotations at their capture are not known."""
    graphs_uncertain: int = 0
    """CUDA graphs with nodes whose place of capture does not follow for certain from CUPTI's callbacks."""
    graph_updates_unseen: int = 0
    """Updates of executable graphs that CUPTI did not report, as before 13.0; later launches have no capture path."""
    graphs_perhaps_updated: int = 0
    """CUDA graphs that may have been updated unobserved: before 13.0 only API calls show updates, and some are
    missing."""
    graph_changes_lost: int = 0
    """Changes of CUDA graphs that could not be kept: too many, or memory ran out."""
    annotations_mixed: int = 0
    """Annotations entered or left while another task's annotation was the innermost of the thread."""
    annotations_unfollowed: int = 0
    """Annotations entered inside others that were not known on the thread: it ran code of another context
    unobserved."""
    annotations_suspended: int = 0
    """Annotations of generators that may wait inside: they name nothing."""
    nvtx_ranges_suspended: int = 0
    """Times that an NVTX range inside an annotation named nothing, because another task of its thread ran."""
    invalid_timestamps: int = 0
    """Rows set apart in ``Recording.invalid``: start or end 0, or end before start."""
    unfinished: int = 0
    """Rows among `invalid_timestamps` that were running or waiting when the recording ended: see `unfinished_work`."""
    lost_with_context: int = 0
    """Rows among `invalid_timestamps` whose context became unusable by a CUDA error: see `unfinished_work`."""
    early: int = 0
    """Rows set apart in ``Recording.early``: they start before the step did."""
    late: int = 0
    """Rows set apart in ``Recording.late``: they end after the step did."""
    records_decoded: int = 0
    records_dropped: int = 0
    """Records that CUPTI reports as dropped."""
    records_unknown_kind: int = 0
    """Records of a kind that was not enabled or is unknown."""
    buffers_requested: int = 0
    buffers_completed: int = 0
    buffers_declined: int = 0
    """Buffer requests that were declined because no buffer was left; their records are lost."""
    buffers_outstanding: int = 0
    """Buffers that CUPTI had not returned when the step ended."""
    buffers_held: int = 0
    """Buffers with records of this part of a longer recording that CUPTI had not returned when the part ended, because
    work in them had not ended."""
    bytes_completed: int = 0
    bytes_unparsed: int = 0
    """Bytes at the end of buffers that could not be read as records."""
    bytes_discarded: int = 0
    """Bytes discarded because no buffer was left: before 12.9, CUPTI crashes without a buffer."""
    decode_cpu_ns: int = 0
    """Processor time spent reading records."""
    callback_calls: int = 0
    untraced: int = 0
    """1: nothing was traced; `collector.Session.unavailable` has the reason."""
    nothing_recorded: int = 0
    """1: the step was traced, but no activity was recorded."""
    capture_ranges_seen: int = 0
    """Ranges that the program has opened, if only ranges of it are recorded (``collector run --capture-range``)."""
    capture_ranges_recorded: int = 0
    """The number of these ranges that were recorded; the recording of a single range has the number of the whole
    journal."""
    open_at_exit: int = 0
    """1: the exit of the interpreter ended the step."""
    interrupted: int = 0
    """1: the file is the journal of a step that had not ended."""
    tables_cut_off: int = 0
    """Tables that are missing because the recording's file is truncated."""
    source_counters: Mapping[str, int] = field(default_factory=dict)
    """Additional counts of the source."""
    unread: Mapping[str, int] = field(default_factory=dict)
    """Missing or repaired part of the file that the step was read from -> number; empty if all of it was read."""

    @property
    def out_of_window(self) -> int:
        """Rows set apart because they are not inside the step."""
        return self.early + self.late

    @property
    def complete(self) -> bool:
        """Whether no loss of records that belong to the step is known."""
        return not self.losses()

    def losses(self) -> list[str]:
        """One line per kind of loss; empty if nothing was lost."""
        return [line for _, line in self.explained_losses()]

    def record_losses(self) -> list[str]:
        """The `losses` of records, without lost names and ``nothing_recorded``: no loss in a test without GPU work."""
        others = ("nothing_recorded", *GRAPH_NAMES_LOST)
        return [line for name, line in self.explained_losses() if name not in others]

    def explained_losses(self) -> list[tuple[str, str]]:
        """The field that counts each loss, and its line in `losses`."""
        counts = self.as_dict()
        with_own_line = self.unfinished + self.lost_with_context
        counts["invalid_timestamps"] = max(0, self.invalid_timestamps - with_own_line)
        if counts.get(BROKE_OFF):
            counts["interrupted"] = 0
        own = [(name, counted(text, count)) for name, text in LOSSES.items() if (count := counts.get(name))]
        return own + shed_lines(counts) + [("unread", line) for line in self.unread_lines()]

    def part_lines(self) -> list[str]:
        """One line for each kind of record that is elsewhere, because this is a part of a longer recording: no loss."""
        counts = self.as_dict()
        return [counted(text, count) for name, text in OF_PARTS.items() if (count := counts[name])]

    def unread_lines(self) -> list[str]:
        """The part of `losses` about the file that the step was read from: missing and repaired content."""
        return [_UNREAD.format(what, count) for what, count in sorted(self.unread.items())]

    def _repr_html_(self) -> str:
        figures = [[name.replace("_", " "), f"{value:,}"] for name, value in self.as_dict().items() if value]
        losses = [html_line(f"Incomplete: {loss}", "bad") for loss in self.losses()]
        table = html_table(["figure", "value"], figures, [True, False])
        return "".join([table, *(losses or [html_line("Nothing was lost.", "good")])])

    def as_dict(self) -> dict[str, int]:
        """All figures by name in a fixed order, those of the source last; without `unread`."""
        own = {name: getattr(self, name) for name in self._own_figures()}
        return own | dict(sorted(self.source_counters.items()))

    @classmethod
    def from_dict(cls, figures: Mapping[str, int]) -> Ledger:
        """The inverse of `as_dict`."""
        names = cls._own_figures()
        own: dict[str, Any] = {name: int(value) for name, value in figures.items() if name in names}
        others = {name: int(value) for name, value in sorted(figures.items()) if name not in names}
        return cls(source_counters=others, **own)

    @classmethod
    def of(cls, provenance: Provenance) -> Ledger:
        """The ledger of a step that was read from a file or a message."""
        return replace(cls.from_dict(provenance.ledger), unread=dict(provenance.unread))

    @classmethod
    def _own_figures(cls) -> list[str]:
        """The fields that are one figure each, in order."""
        return [item.name for item in fields(cls) if item.name not in ("source_counters", "unread")]


BROKE_OFF = "journal_broke_off"
"""The figure of a journal that could not be written to the end of its session; it counts as `Ledger.interrupted`."""
LOSSES = {
    "untraced": "nothing was traced",
    "nothing_recorded": "nothing was recorded: the traced process had no activity of the recorded kinds",
    "open_at_exit": "the step was still open when the interpreter ended, and ends there",
    "interrupted": "this is the journal of a step that had not ended: records that had not reached it are missing",
    BROKE_OFF: "the recording broke off while its program went on: its journal could not be written any more, and what "
    "came later is missing",
    "rows_missing": "{} row[|s] [is|are] in segments of the journal that are missing or damaged",
    "tables_cut_off": "{} table[|s] [is|are] missing: the recording's file is cut off",
    "records_dropped": "CUPTI dropped {} record[|s]: make more or larger buffers (max_buffers, buffer_bytes)",
    "buffers_declined": "{} buffer request[|s] [was|were] declined: raise max_buffers",
    "bytes_discarded": "{} byte[|s] of records [was|were] discarded for want of buffers: raise max_buffers",
    "buffers_outstanding": "{} buffer[|s] had not come back when the step ended: raise timeout_ms, keep synchronize on",
    "buffers_held": "work had not ended when this part of a recording did: CUPTI still held {} buffer[|s] with calls "
    "and activities that are missing here. The recording gets them; a step with synchronize waits for its work",
    "bytes_unparsed": "{} byte[|s] of buffers could not be read as records",
    "records_unknown_kind": "{} record[|s] [is|are] of a kind this version does not know",
    "unfinished": "{} activit[y|ies] [was|were] still running or waiting when the recording ended: no end is known",
    "lost_with_context": "{} activit[y|ies] [has|have] no times: a CUDA error made [its|their] context unusable before "
    "CUPTI had delivered [its|their] record[|s]. A journal or collector.record() has those of earlier work",
    "invalid_timestamps": "{} activit[y|ies] [has|have] no usable time (CUPTI gave 0, or an end before the start)",
    "early": "{} activit[y|ies] start[s|] before the step and [is|are] kept apart",
    "late": "{} activit[y|ies] end[s|] after the step and [is|are] kept apart",
    "launches_without_kernel": "{} launch[|es] succeeded but no activity of [it|theirs] was recorded",
    "kernels_without_launch": "{} kernel[|s] belong[s|] to no launch that was seen",
    "peer_copies_unrecorded": "{} cop[y|ies], perhaps between GPUs, [has|have] no record: add peer_copies to the "
    "kinds, but with CUPTI before 13.5 not in a program that launches CUDA graphs",
    "correlations_unmatched": "{} launch[|es] [was|were] made inside an annotation whose record is missing, as in a "
    "damaged journal, or in a ring that is too small for the names: [it has|they have] no name",
    "graphs_before_trace": "{} CUDA graph[|s] [was|were] captured before this trace (or this window of its schedule): "
    "[its|their] kernels and copies have only the annotation of the launch",
    "graphs_uncertain": "{} CUDA graph[|s] [has|have] nodes whose capture is not certain, in child graphs, bodies of "
    "conditional nodes or after an update: their kernels and copies have only the annotation of the launch",
    "graph_updates_unseen": "{} update[|s] of CUDA graphs could not be followed before CUDA 13.0: graphs launched "
    "later carry the annotation of the launch only",
    "graphs_perhaps_updated": "{} CUDA graph[|s] may have been updated unseen: before CUDA 13.0 only records of API "
    "calls show updates, and not all calls were recorded. [Its|Their] kernels and copies have only the annotation of "
    "the launch",
    "graph_changes_lost": "{} change[|s] of CUDA graphs could not be kept: captures may lack their annotation",
    "annotation_ends_lost": "{} annotation[|s] of the program ended unseen, for lack of memory: [it ends|they end] "
    "with the step here",
    "annotations_mixed": "tasks took turns inside annotations of one thread, or left them out of order ({} time[|s]): "
    "launches may carry another's name. Decorate the coroutine with annotate() where the loop is not asyncio's",
    "annotations_unfollowed": "{} annotation[|s] began in a copied context that a thread entered unseen: launches "
    "before [it|them] have no name. Annotate the function that the thread runs",
    "annotations_suspended": "{} annotation[|s] of generators [has|have] a yield inside and name[s|] nothing: decorate "
    "the generator with annotate(), or end the block before the yield",
    "annotations_without_details": "{} annotation[|s] [has|have] no flops, bytes, inputs or stack: there are too many "
    "different ones for the memory",
    "nvtx_copies_missed": "NVTX of {} librar[y|ies] was in use before the handler was armed: [its|their] ranges are "
    "not seen (nvtx_missed in the environment names [it|them])",
    "nvtx_domains_absent": "{} NVTX domain[|s] that [was|were] chosen [was|were] not seen: nvtx_absent in the "
    "environment names [it|them], nvtx_domains those that the program has",
    "nvtx_ranges_lost": "{} NVTX range[|s] or mark[|s] could not be kept: there are too many",
    "nvtx_ranges_suspended": "{} time[|s] an NVTX range was open while another task of its thread went on, and named "
    "nothing meanwhile. Use annotate() in coroutines, or end the range before the await",
    "nvtx_names_unknown": "{} name[|s] of CUDA streams or contexts could not be matched with the recorded ones: give "
    "[it|them] inside a trace, or after the first one",
    "nvtx_names_dropped": "{:,} name[|s] that NVTX gave threads, GPUs, contexts or streams [was|were] dropped: "
    "there are too many",
    "nvtx_names_cut": "{:,} name[|s] that NVTX gave threads, GPUs, contexts or streams [is|are] above 4,096 bytes: the "
    "beginning was kept",
    "nvtx_failures": "{} NVTX call[|s] could not be recorded: memory ran out",
    "counters_not_sampled": "clocks, power and memory of GPUs were not sampled, or not of all (counter_trouble in the "
    "environment says why)",
    "names_cut": "{:,} annotation[|s], range[|s] or mark[|s] [has|have] a name, path or other text above 4,096 bytes, "
    "of which the beginning was kept",
    "ranges_without_name": "{} NVTX range[|s] or mark[|s] [has|have] no text of [its|their] own: there are too many "
    "different ones",
}
"""Figure -> the line that explains the loss. Other figures are not losses, whatever their value."""
OF_PARTS = {
    "launches_cut": "{:,} launch[|es] at the edges of this part [is|are] cut: [its|their] call or activities are in "
    "another part",
    "rows_forgotten": "{:,} earlier row[|s] [was|were] removed to keep within the limit of size or time",
}
"""Figure of a part of a longer recording -> the line that explains it."""
GRAPH_NAMES_LOST = ("graphs_before_trace", "graphs_uncertain", "graph_updates_unseen", "graphs_perhaps_updated")
"""The `LOSSES` after which only the annotation at the capture of CUDA graphs is unknown."""
TIMES_LOST = (
    "records_dropped",
    "buffers_declined",
    "buffers_outstanding",
    "buffers_held",
    "bytes_discarded",
    "bytes_unparsed",
    "invalid_timestamps",
)
"""The `LOSSES` after which the remaining times are unreliable, because any activity may be missing."""
_UNREAD = "{} in the file that the step was read from: {}"
_UNREAD_LINE = re.compile(_UNREAD.format("(.*)", "([0-9]{1,15})"))


def unread_of_lines(lines: Iterable[str]) -> dict[str, int]:
    """`Ledger.unread` from lines of `Ledger.losses`, or of any program: other lines are warnings of the file."""
    found: Counter[str] = Counter()
    for line in lines:
        unread = _UNREAD_LINE.fullmatch(line)
        found[unread[1] if unread else f"the warning {line!r}"] += int(unread[2]) if unread else 1
    return found
