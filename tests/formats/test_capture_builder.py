"""Numbers of GPUs, of which several ranks may have the same."""

from __future__ import annotations

from collector.formats.capture_builder import device_ids


def test_a_gpu_keeps_its_number_where_no_other_has_it():
    assert device_ids(["/gpu:3", "/gpu:0", "/gpu:3", "GPU"]) == {"/gpu:3": 3, "/gpu:0": 0, "GPU": 1}


def test_gpus_of_several_ranks_get_the_next_free_numbers():
    units = [f"rank {rank} /gpu:{gpu}" for rank in range(3) for gpu in (0, 2)]
    assert list(device_ids(units).values()) == [0, 2, 1, 3, 4, 5]


def test_thousands_of_gpus_are_numbered_at_once():
    """Each number was looked for among all others, and from the GPU's own number on."""
    units = [f"rank {rank} /gpu:{gpu}" for rank in range(1000) for gpu in range(8)]
    assert sorted(device_ids(units).values()) == list(range(8000))
