"""Recordings read in two steps: code that ignores the laziness sees complete data."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.allocator_planes import Log
from support.allocators import Block, allocator
from support.payload_decoder import decode

from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes, usage
from tb_memplugin.errors import InputError
from tb_memplugin.model.recording import LazyRecording, Recording
from tb_memplugin.model.text import Text
from tb_memplugin.questions.kinds.first_view import first_view
from tb_memplugin.questions.recording.details import details
from tb_memplugin.questions.recording.tables import rows


def one_allocation() -> Recording:
    """Return a profile with a single allocator event, inside a call of `make`."""
    log = Log().add(False, 5, allocator_name="a", addr=1, allocation_bytes=8)
    log.plane.event_metadata[9].name = b"make"
    log.plane.lines[0].events.add(metadata_id=9, offset_ps=0, duration_ps=10)
    return log.only()


def test_views_that_read_names_and_stacks_get_them() -> None:
    assert [frame["function"] for frame in details(one_allocation(), 0)["stack"]] == ["make"]
    assert decode(rows(one_allocation()))[1]["rows"]["name"] == ["make"]


def test_the_outline_has_the_same_rows_without_them() -> None:
    recording = one_allocation()
    outline = recording.outline
    assert outline is not recording and not (outline.allocations.stack >= 0).any()
    for column in ("id", "size", "charge", "start", "end", "offset", "role"):
        assert getattr(outline.allocations, column).tolist() == getattr(recording.allocations, column).tolist()


class Reader:
    """Count how often the rest of a recording is read."""

    def __init__(self, outline: Recording) -> None:
        self.reads, self.outline = 0, outline

    def __call__(self) -> Recording:
        self.reads += 1
        names = Text.of(["named"] * len(self.outline.allocations))
        return replace(self.outline, allocations=replace(self.outline.allocations, name=names))


@pytest.fixture
def reader() -> Reader:
    return Reader(allocator([Block("a", 4, 0, 1), Block("b", 8, 1, None)], 2))


def test_the_rest_is_read_once_and_only_on_access(reader: Reader) -> None:
    recording = LazyRecording.of(reader.outline, reader)
    assert recording.id == reader.outline.id
    assert peak(recording) == peak(reader.outline) and reserved_bytes(recording) == reserved_bytes(reader.outline)
    assert usage(recording) is usage(reader.outline)
    first_view(recording)
    assert reader.reads == 0
    assert [recording.allocations.name[row] for row in range(2)] == ["named", "named"]
    assert recording.stacks is reader.outline.stacks and recording.load() is recording
    assert reader.reads == 1


def test_a_copy_has_everything(reader: Reader) -> None:
    copy = replace(LazyRecording.of(reader.outline, reader), run="other")
    assert (copy.run, copy.allocations.name[0], reader.reads) == ("other", "named", 1)
    assert copy.outline is copy and copy.load() is copy


def test_damage_raises_on_each_access_and_leaves_the_outline() -> None:
    def damaged() -> Recording:
        raise InputError("the host's events are damaged", "file", "profile again")

    recording = LazyRecording.of(allocator([Block("a", 4, 0, None)], 1), damaged)
    for _ in range(2):
        with pytest.raises(InputError, match="damaged"):
            _ = recording.stacks
    assert len(recording.outline.allocations) == 1
