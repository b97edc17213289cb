"""The annotations around launches, by correlation id."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.recording.cupti_enums import ANNOTATION_EXTERNAL_KIND
from collector.recording.first_rows import look_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    Columns = Mapping[str, npt.NDArray[Any]]


class LaunchAnnotations:
    """The innermost annotation around the launch of each correlation id, determined at first use."""

    def __init__(self, annotations: Sequence[Columns], external_correlations: Columns) -> None:
        """Take a recording's columns; the annotations include those that were set apart."""
        self._annotations = annotations
        self._external_correlations = external_correlations

    def rows_of(self, correlation_ids: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """For each correlation id the row of its annotation, over all tables, or -1 if there was none."""
        return look_up(correlation_ids, *self._rows)

    def name_ids_of(self, correlation_ids: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """For each correlation id the name id of its annotation, or -1 if there was none."""
        return look_up(correlation_ids, self._rows[0], self._name_ids)

    @cached_property
    def _name_ids(self) -> npt.NDArray[Any]:
        """For each of the sorted correlation ids the name id of its annotation."""
        return self._column("name_id")[self._rows[1]]

    def _column(self, name: str) -> npt.NDArray[Any]:
        return np.concatenate([columns[name] for columns in self._annotations])

    @cached_property
    def _rows(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Sorted correlation ids, and the row of each one's annotation."""
        external_ids, external = self._column("external_id"), self._external_correlations
        is_ours = external["external_kind"] == ANNOTATION_EXTERNAL_KIND
        by_id = np.argsort(external_ids, kind="stable")
        rows = look_up(external["external_id"][is_ours], external_ids[by_id], by_id)
        ids, first = np.unique(external["correlation_id"][is_ours][rows >= 0], return_index=True)
        return ids, rows[rows >= 0][first]
