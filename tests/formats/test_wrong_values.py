"""Files of the right form with wrong values in them: whatever is asked of one gives an answer or one clear error."""

from __future__ import annotations

import copy
import gzip
import json
import random
import re
import zipfile
from contextlib import suppress

import pytest
from google.protobuf import json_format

import collector
from collector.analysis.questions import QUESTIONS
from collector.errors import CollectorError, InvalidFileError
from collector.protos import RunMetadata
from collector.protos.xplane_pb2 import XSpace
from collector.recording.annotation_details import Argument, Details, Frame
from collector.recording.recording import Recording

OURS, MERGED = "a drawn step", "a merged trace"
MESSAGES = {"pb": RunMetadata, "xplane.pb": XSpace}
RECORDED = (
    "kineto/mock_cupti28_graph_ids.json.gz",
    "hta/a100_event_sync.json.gz",
    "hta/gp100_gpu_user_annotation.json.gz",
    "tf_ikhlestov/gpu_timeline_01.json.gz",
    "proton/triton_example.json.gz",
)
VALUES = [
    *(None, True, False, -1, 0, 1, 0.5, 1e300, -1e300, 10**30),
    *(2**bits for bits in (31, 32, 53, 63, 64)),
    *("", "x", "\ud800", "123", "-1", "1.5", "nan", "a/b:c", "/gpu:0", "Steps", "stream:7", "rank 0 GPU 0"),
    *("M", "X", "B", "E", "s", "f", "kernel", "gpu_memcpy", "cuda_runtime", "ac2g"),
    *([], {}, [1, 2], {"a": 1}, "[1]", "null", '{"0": 5}', '{"0": [1e999]}'),
]
SAVED = ("json", "gpurec", "pb", "xplane.pb")
OF_EACH_CATEGORY = 20


@pytest.fixture
def recording(build):
    """A small recording with annotations that state details."""
    for number in range(3):
        build.launch(number + 1, 1_000 * number).kernel("gemm", 1_000 * number + 500, 300, correlation_id=number + 1)
        build.annotation(f"layer{number}", 1_000 * number - 10, 800, number + 1, number + 1)
        build.rows["annotations"][-1]["details_id"] = 1
    build.call("cudaMemcpy_v3020", 5_000, 900, correlation_id=9).memcpy(5_200, 600, correlation_id=9, copy_kind=1)
    build.raw("devices", device_id=0, name_id=build.text("H100"))
    frame = Frame("model.py", 12, "forward", 10)
    details = Details(1 << 20, 64, "Conv2D", ("input",), (frame,), (Argument((4, 4), "float"),))
    return Recording.from_capture({**build.capture(), "details": [details]})


@pytest.fixture
def document(request, tmp_path):
    """The content of a small JSON file."""
    if request.param in RECORDED:
        path = request.getfixturevalue("shared") / "data" / "gpu_traces" / request.param
        return sampled(json.loads(gzip.decompress(path.read_bytes())))
    recording = request.getfixturevalue("recording")
    for rank in range(2):
        recording.save(tmp_path / f"rank{rank}.gpurec")
    path = tmp_path / "whole.json"
    if request.param == OURS:
        collector.load(tmp_path / "rank0.gpurec").save(path)
    else:
        collector.merge([tmp_path / f"rank{rank}.gpurec" for rank in range(2)], path)
    return json.loads(path.read_bytes())


def sampled(document):
    """The first events of each category, and everything besides the events."""
    if isinstance(document, dict) and "traceEvents" in document:
        found = {}
        for event in document["traceEvents"]:
            found.setdefault((event.get("ph"), event.get("cat")), []).append(event)
        document["traceEvents"] = [event for events in found.values() for event in events[:OF_EACH_CATEGORY]]
    return document


def places_in(found, place=()):
    """The keys that lead to each value inside an object or a list."""
    items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in items:
        yield (*place, key)
        yield from places_in(value, (*place, key))


def at(found, place):
    for key in place:
        found = found[key]
    return found


def mutated(document, chance):
    """A copy in which a few values are missing, are others, or are those of another place."""
    places = list(places_in(document))
    about = [place for place in places if place[0] != "traceEvents"] or places
    found = copy.deepcopy(document)
    for _ in range(chance.choice([1, 2, 5, 20])):
        *around, last = chance.choice(about if chance.random() < 0.4 else places)
        with suppress(KeyError, IndexError, TypeError):  # an earlier change has removed the place
            kind = chance.randrange(10)
            if kind < 3:
                del at(found, around)[last]
            elif kind < 4:
                at(found, around)[last] = copy.deepcopy(at(document, chance.choice(places)))
            else:
                at(found, around)[last] = chance.choice(VALUES)
    return found


def ask_everything(path):
    step = collector.load(path)
    for question in QUESTIONS.values():
        with suppress(CollectorError):
            question.ask(step)
    if step.sums is None:
        assert step.recording.ledger.losses() is not None
        assert step.wire()
        for suffix in SAVED:
            again = path.with_name(f"again.{suffix}")
            collector.load(path).save(again)
            assert collector.load(again).recording.ledger.as_dict()


def rewritten(recording, folder):
    """The metadata of a recording's file, and a function that writes the file with others."""
    recording.save(folder / "whole.gpurec")
    with zipfile.ZipFile(folder / "whole.gpurec") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}

    def write(metadata):
        with zipfile.ZipFile(folder / "rewritten.gpurec", "w") as archive:
            for name, content in (members | {"meta.json": json.dumps(metadata)}).items():
                archive.writestr(name, content)
        return folder / "rewritten.gpurec"

    return json.loads(members["meta.json"]), write


SEEDS = pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 4))]
)
ATTEMPTS = 12


@pytest.mark.medium
@SEEDS
@pytest.mark.parametrize("document", [OURS, MERGED, *RECORDED], indirect=True)
def test_wrong_values_in_json(document, tmp_path, seed):
    chance = random.Random(seed)
    path = tmp_path / "mutated.json"
    path.write_text(json.dumps(document))
    ask_everything(path)
    for _ in range(ATTEMPTS):
        path.write_text(json.dumps(mutated(document, chance)))
        with suppress(CollectorError):
            ask_everything(path)


@pytest.mark.medium
@SEEDS
def test_wrong_values_in_the_metadata_of_a_recording(recording, tmp_path, seed):
    chance = random.Random(seed)
    metadata, write = rewritten(recording, tmp_path)
    for _ in range(3 * ATTEMPTS):
        path = write(mutated(metadata, chance))
        with suppress(CollectorError):
            ask_everything(path)


@pytest.mark.medium
@SEEDS
@pytest.mark.parametrize("suffix", MESSAGES)
def test_wrong_values_in_messages(recording, tmp_path, suffix, seed):
    chance = random.Random(seed)
    recording.save(tmp_path / "whole.gpurec")
    path = tmp_path / f"mutated.{suffix}"
    collector.load(tmp_path / "whole.gpurec").save(path)
    message = MESSAGES[suffix].FromString(path.read_bytes())
    document = json_format.MessageToDict(message, preserving_proto_field_name=True)
    for _ in range(3 * ATTEMPTS):
        with suppress(json_format.ParseError, json_format.Error, SystemError, UnicodeError):  # no message has the value
            path.write_bytes(json_format.ParseDict(mutated(document, chance), MESSAGES[suffix]()).SerializeToString())
            with suppress(CollectorError):
                ask_everything(path)


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("strings", 0), 5, "one of the strings is not text"),
        (("counters", "callback_calls"), 1.5, "counters: callback_calls is not a possible whole number"),
        (("counters", "callback_calls"), 10**30, f"the number {10**30} has more than 64 bits"),
        (("clock", "cupti_start_ns"), 1e300, "clock: cupti_start_ns is not a possible whole number"),
        (("launch_figures", "launches_seen"), "5", "launch_figures: launches_seen is not a possible whole number"),
        (("columns", "kernels", "start_ns", "base"), 1.5, "the packing of a column is not stated in whole numbers"),
        (("counters", "callback_calls"), 2**63, "counters: callback_calls is not a possible whole number"),
        (("rows_apart",), {"kernels": [0, -1, 0]}, "rows_apart: kernels does not have three possible whole numbers"),
        (("rows_apart",), {"kernels": [1, 2]}, "rows_apart: kernels does not have three possible whole numbers"),
        (("rows_apart",), [5], "'list' object has no attribute 'items'"),
        (("details", 0, 0), 2**63, f"{2**63} is too large for the details of an annotation"),
        (("details", 0, 0), 0.5, "'float' object cannot be interpreted as an integer"),
    ],
)
def test_metadata_of_a_recording_that_is_of_another_type_is_damage(recording, tmp_path, place, value, reason):
    metadata, write = rewritten(recording, tmp_path)
    *around, last = place
    at(metadata, around)[last] = value
    path = write(metadata)
    with pytest.raises(InvalidFileError, match=f"a damaged recording \\({re.escape(reason)}"):
        collector.load(path)
