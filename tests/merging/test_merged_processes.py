"""A file of several processes answers as their own files together do: no launch owns the work of another process."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from reference.processes_of_a_job import FIGURES, process_recordings
from support.properties import examples

import collector


def _saved(recordings, folder, suffix, names):
    paths = [folder / f"{name}{suffix}" for name in names]
    for recording, path in zip(recordings, paths, strict=True):
        recording.save(path)
    return paths


def _sum(figure, recordings):
    found = Counter()
    for recording in recordings:
        found.update(figure(recording))
    return +found


@pytest.mark.medium
@pytest.mark.parametrize("suffix", [".json"])
@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.__name__)
@settings(max_examples=examples(40))
@given(recordings=st.lists(process_recordings(), min_size=2, max_size=3))
def test_a_merged_file_answers_as_its_ranks(tmp_path_factory, figure, suffix, recordings):
    folder = tmp_path_factory.mktemp("merged")
    names = [f"rank{rank}" for rank in range(len(recordings))]
    merged = collector.merge(_saved(recordings, folder, ".gpurec", names), folder / f"all{suffix}").output
    alone = [collector.load(path).recording for path in _saved(recordings, folder, suffix, names)]
    assert +figure(collector.load(merged).recording) == _sum(figure, alone)
