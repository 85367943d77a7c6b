"""Events that two threads read, against one thread's, on real, synthetic and damaged planes."""

from __future__ import annotations

import random
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from support.allocator_planes import REAL

from tb_memplugin.model.text import Text
from tb_memplugin.protos.xplane_pb2 import XPlane, XSpace
from tb_memplugin.readers.xplane.allocator import events
from tb_memplugin.readers.xplane.allocator.events import read_allocator_events
from tb_memplugin.readers.xplane.planes import Plane


def answer(data: bytes) -> Any:
    """Return all columns, with texts as their codes and distinct texts, or the error."""
    try:
        found = read_allocator_events(Plane(memoryview(data)))
    except ValueError as error:
        return str(error)
    if found is None:
        return None
    columns = {field.name: getattr(found, field.name) for field in fields(found)}
    texts, numbers = columns.pop("texts"), columns.pop("numbers")
    return {name: plain(value) for name, value in {**columns, **numbers, **texts}.items()}


def plain(value: Any) -> Any:
    return (
        (value.codes.tolist(), list(value.strings))
        if isinstance(value, Text)
        else repr(getattr(value, "tolist", int)())
    )


def both(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    answers = []
    for large in (len(data) + 1, 0):
        monkeypatch.setattr(events, "LARGE_BYTES", large)
        answers.append(answer(data))
    return answers[0], answers[1]


def host_plane(path: Path) -> bytes:
    return next(p for p in XSpace.FromString(path.read_bytes()).planes if p.name == b"/host:CPU").SerializeToString()


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.parents[3].name)
def test_real_planes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = both(host_plane(path), monkeypatch)
    assert one == two is not None


def plane_of_texts(seed: int) -> XPlane:
    """Return a plane with few or many lines, whose events have the same and other texts, spelled out or referred to."""
    rng = random.Random(seed)
    plane = XPlane(name=b"/host:CPU")
    for key, name in enumerate((b"MemoryAllocation", b"other"), start=1):
        plane.event_metadata[key].name = name
    for key, name in enumerate((b"allocator_name", b"tf_op", b"addr", b"op a", b"op b"), start=1):
        plane.stat_metadata[key].name = name
    for _ in range(rng.choice((0, 1, 2, 7))):
        line = plane.lines.add(name=b"thread", timestamp_ns=rng.randrange(5))
        for _ in range(rng.choice((0, 1, 9))):
            event = line.events.add(metadata_id=rng.choice((1, 1, 2)), offset_ps=rng.randrange(9000))
            event.stats.add(metadata_id=3, int64_value=rng.randrange(99))
            event.stats.add(metadata_id=1, str_value=rng.choice((b"", b"GPU_0", b"GPU_1", b"op a")))
            if rng.random() < 0.5:
                event.stats.add(metadata_id=2, ref_value=rng.choice((4, 5, 9)))
    return plane


@pytest.mark.parametrize("seed", range(60))
def test_texts_of_both_halves_are_numbered_as_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = both(plane_of_texts(seed).SerializeToString(), monkeypatch)
    assert one == two


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_plane_has_the_same_answer_or_error(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    data = bytearray(plane_of_texts(seed % 7 + 60).SerializeToString())
    for _ in range(40):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] = rng.randrange(256)
        one, two = both(bytes(damaged[: rng.choice((len(data), rng.randrange(len(data))))]), monkeypatch)
        assert one == two
