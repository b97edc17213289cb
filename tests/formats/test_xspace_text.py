"""The extension makes the text of an XSpace's events as the reference does, in pieces of limited size."""

from __future__ import annotations

import math
import random

import pytest
from reference.plain_xspace_text import PlainEvents

from collector.formats.xplane import stats_fields
from collector.protos.xplane_pb2 import XEvent, XLine, XPlane, XSpace, XStat
from collector.runtime.extension import convert_extension

TEXTS = ["", "a", 'said "b" \\ \n', "Grün \U0001f600 \x7f", "correlation_id", "a long text, of more than sixteen bytes"]
NUMBERS = [0, 1, 7, 1 << 32, (1 << 32) - 1, (1 << 40) + 3, (1 << 63) - 1]
DOUBLES = [0.0, -0.0, 1.5, 1e16, 1e-7, 123456789.125, math.nan, math.inf, -math.inf]
TIMES = [0, 499, 500, 501, 1500, 2500, -1, -500, -501, 10**15, (1 << 63) - 1, -(1 << 63)]


def random_stat(rng: random.Random) -> XStat:
    value = rng.choice(
        [
            {"double_value": rng.choice(DOUBLES)},
            {"uint64_value": rng.choice([*NUMBERS, (1 << 64) - 1])},
            {"int64_value": rng.choice([*NUMBERS, -5, -(1 << 63)])},
            {"str_value": rng.choice(TEXTS)},
            {"bytes_value": b"\xff\x00"},
            {"ref_value": rng.choice([*range(8), (1 << 64) - 2])},
            {},
        ]
    )
    return XStat(metadata_id=rng.choice([*range(8), -2]), **value)


def random_plane(rng: random.Random) -> XPlane:
    plane = XPlane()
    for number in [*range(1, 7), -2]:
        plane.stat_metadata[number].name = rng.choice(TEXTS)
    for number in [*range(1, 5), -3]:
        metadata = plane.event_metadata[number]
        metadata.name, metadata.display_name = rng.choice(TEXTS), rng.choice(TEXTS)
        metadata.stats.extend(random_stat(rng) for _ in range(rng.choice([0, 0, 2])))
    for _ in range(rng.randrange(4)):
        line = XLine(timestamp_ns=rng.choice([0, 1, 1_700_000_000_000_000_000, rng.choice(TIMES)]))
        for _ in range(rng.randrange(30)):
            event = line.events.add(metadata_id=rng.choice([*range(6), -3]), duration_ps=rng.choice(TIMES))
            if rng.random() < 0.9:
                event.offset_ps = rng.choice(TIMES)
            else:
                event.num_occurrences = 4
            event.stats.extend(random_stat(rng) for _ in range(rng.randrange(6)))
        plane.lines.append(line)
    return plane


def texts_of_lines(space: XSpace, num_bytes: int) -> tuple[list[list[str]], dict[str, int]]:
    """The pieces of each line, and the stats that were not kept."""
    events = convert_extension.XSpaceText()
    lines = []
    for process, plane in enumerate(space.planes, start=1):
        names = {
            number: (metadata.display_name or metadata.name, stats_fields(metadata.stats))
            for number, metadata in plane.event_metadata.items()
        }
        events.begin_plane(names, {number: about.name for number, about in plane.stat_metadata.items()}, process)
        for thread, line in enumerate(plane.lines, start=1):
            events.begin_line(line.SerializeToString(), line.timestamp_ns, thread)
            pieces = []
            while piece := events.next(num_bytes):
                pieces.append(piece.decode("ascii"))
            lines.append(pieces)
    return lines, events.not_kept()


@pytest.mark.parametrize("seed", range(40))
def test_the_text_is_that_of_the_reference(seed):
    rng = random.Random(seed)
    space = XSpace(planes=[random_plane(rng) for _ in range(rng.randrange(1, 4))])
    lines, not_kept = texts_of_lines(space, rng.choice([1, 300, 1 << 20]))
    plain = PlainEvents()
    assert ["".join(pieces) for pieces in lines] == list(plain.lines(space))
    assert not_kept == dict(plain.not_kept)


def test_a_line_is_made_in_pieces():
    line = XLine(events=[XEvent(offset_ps=1000 * i, duration_ps=1000) for i in range(1000)])
    (pieces,), _ = texts_of_lines(XSpace(planes=[XPlane(lines=[line])]), 500)
    assert len(pieces) > 100
    assert all(500 <= len(piece) < 700 for piece in pieces[:-1])


def test_a_line_that_is_not_one_is_an_error():
    events = convert_extension.XSpaceText()
    events.begin_plane({}, {}, 1)
    events.begin_line(b"\x22\xff", 0, 1)
    with pytest.raises(convert_extension.WireError):
        events.next(1)
