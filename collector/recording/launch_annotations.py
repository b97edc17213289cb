"""The annotations around launches, by correlation id, and around the captures of graph nodes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.cupti_enums import ANNOTATION_EXTERNAL_KIND
from collector.recording.first_rows import distinct_rows, look_up
from collector.recording.graph_paths import path_with_capture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    Columns = Mapping[str, npt.NDArray[Any]]


class LaunchAnnotations:
    """The innermost annotation around the launch of each correlation id, determined at first use."""

    def __init__(
        self, annotations: Sequence[Columns], external_correlations: Columns, strings: Sequence[str] = ()
    ) -> None:
        """Take a recording's columns; the annotations include those that were set apart."""
        self._annotations = annotations
        self._external_correlations = external_correlations
        self._strings = strings

    def rows_of(self, correlation_ids: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """For each correlation id the row of its annotation, over all tables, or -1 if there was none."""
        return look_up(correlation_ids, *self._rows)

    def capture_rows_of(self, external_ids: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """For each id of an annotation its row, over all tables, or -1 for 0 and unknown ids."""
        return look_up(external_ids, *self._by_id)

    def name_ids_of(
        self, correlation_ids: npt.NDArray[Any], captured_ids: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[np.int64]:
        """For each correlation id the name id of its annotation, or -1 if there was none.

        Args:
            correlation_ids: the ids of activities or calls.
            captured_ids: for each activity the annotation around its capture, 0 for none. The path then contains both
                annotations.
        """
        found = look_up(correlation_ids, self._rows[0], self._name_ids)
        if captured_ids is None or not captured_ids.any():
            return found
        rows = self.capture_rows_of(captured_ids)
        launched = found[rows >= 0]
        pairs, codes = self._pairs(launched, rows[rows >= 0])
        paths = [self._path_of(*pair) for pair in pairs]
        place_of = {text: place for place, text in enumerate(self._strings)} if paths else {}
        # A path that is not a text of the recording, as in a damaged file, is that of the launch alone.
        known = [place_of.get(path, of_launch) for path, (of_launch, _) in zip(paths, pairs, strict=True)]
        found[rows >= 0] = np.array(known, np.int64)[codes]
        return found

    def paths_with_capture(self, correlation_ids: npt.NDArray[Any], captured_ids: npt.NDArray[Any]) -> list[str]:
        """The distinct paths of activities whose capture has an annotation; `name_ids_of` finds them in the strings."""
        rows = self.capture_rows_of(captured_ids)
        launched = look_up(correlation_ids[rows >= 0], self._rows[0], self._name_ids)
        return [self._path_of(*pair) for pair in self._pairs(launched, rows[rows >= 0])[0]]

    def _pairs(
        self, launched: npt.NDArray[np.int64], capture_rows: npt.NDArray[np.int64]
    ) -> tuple[list[tuple[int, int]], npt.NDArray[np.int64]]:
        """The distinct pairs of name ids at the launch and at the capture, and which of them each activity has."""
        captured = self._column("name_id")[capture_rows]
        first, codes = distinct_rows([launched, captured])
        return list(zip(launched[first].tolist(), captured[first].tolist(), strict=True)), codes

    def _path_of(self, launched: int, captured: int) -> str:
        return path_with_capture(self._strings[launched] if launched >= 0 else "", self._strings[captured])

    @cached_property
    def _name_ids(self) -> npt.NDArray[Any]:
        """For each of the sorted correlation ids the name id of its annotation."""
        return self._column("name_id")[self._rows[1]]

    def _column(self, name: str) -> npt.NDArray[Any]:
        return np.concatenate([columns[name] for columns in self._annotations])

    @cached_property
    def _by_id(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """The sorted ids of annotations, and their rows."""
        external_ids = self._column("external_id")
        by_id = np.argsort(external_ids, kind="stable")
        return external_ids[by_id], by_id

    @cached_property
    def _rows(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Sorted correlation ids, and the row of each one's annotation."""
        external = self._external_correlations
        is_ours = external["external_kind"] == ANNOTATION_EXTERNAL_KIND
        rows = look_up(external["external_id"][is_ours], *self._by_id)
        ids, first = np.unique(external["correlation_id"][is_ours][rows >= 0], return_index=True)
        return ids, rows[rows >= 0][first]
