"""Files that are truncated, empty, altered or of another format: an answer, or an InputError that names the file."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from support.profiles import DAMAGED, Compiled, compiled_programs, profiles

from tb_memplugin.analysis.advice import advise
from tb_memplugin.analysis.usage.live_bytes import peak, usage
from tb_memplugin.errors import InputError
from tb_memplugin.model.recording import Recording
from tb_memplugin.protos.hlo_pb2 import HloProto
from tb_memplugin.questions.kinds import first_view as memory_viewer
from tb_memplugin.questions.recording import details, tables
from tb_memplugin.questions.xprof import memory_viewer as xprof_memory_viewer
from tb_memplugin.readers import open_file

PIECES = 50
FLIPPED, ALTERED = 150, 150
ODD_NUMBERS = [0, 1, -1, 7, 100, 2**31 - 1, -(2**31), 2**53, 2**63 - 1, -(2**63)]
ODD_WORDS = [b"", b"\xff\xfe", b"tuple", b"while", b"conditional", b"call", b"parameter", b"copy-start", b"fusion"]

SMALL = [program for program in compiled_programs() if len(program.data) < 60_000]


def attempt(data: bytes, path: str) -> list[Recording]:
    """Read everything that the page requests from a file; every error names the file."""
    found: list[Recording] = []
    try:
        parts = open_file(data, path)
    except InputError as error:
        assert path in str(error)
        return found
    for part in parts:
        try:
            found += part.read()
        except InputError as error:
            assert path in str(error)
    for recording in found:
        memory_viewer.first_view(recording)
        try:
            ask(recording)
        except InputError as error:  # damage in a part that is read on access
            assert path in str(error)
    return found


def ask(recording: Recording) -> None:
    live = usage(recording).live
    assert peak(recording).bytes == max(live, default=0) >= min(live, default=0) >= 0
    memory_viewer.first_view(recording)
    tables.rows(recording)
    for row in range(min(len(recording.allocations), 3)):
        details.details(recording, row)
    advise(recording)
    if recording.program:
        xprof_memory_viewer.memory_viewer([recording], recording.program.memory_space)


@pytest.mark.parametrize("program", compiled_programs(), ids=str)
def test_programs_cut_short(program: Compiled) -> None:
    step = max(1, len(program.data) // PIECES)
    for length in range(0, len(program.data), step):
        attempt(program.data[:length], "/logs/cut.hlo_proto.pb")


@pytest.mark.parametrize("path", profiles(), ids=lambda path: path.parents[3].name)
def test_profiles_cut_short(path: Any) -> None:
    data = path.read_bytes()
    for piece in range(PIECES):
        found = attempt(data[: len(data) * piece // PIECES], "/logs/cut.xplane.pb")
        assert not found or piece


@pytest.mark.parametrize("name", ["x.xplane.pb", "x.hlo_proto.pb", "x.hlo.pb"])
@pytest.mark.parametrize("data", [b"", b"\0", b"not a profile at all", b"PK\x03\x04" + bytes(99), b"\x0a\xff" * 9])
def test_other_files(name: str, data: bytes) -> None:
    assert attempt(data, f"/logs/{name}") == []


def test_a_profile_that_went_through_a_text_encoding() -> None:
    if not DAMAGED.is_dir():
        pytest.skip("needs the profiles beside the repository")
    (path,) = DAMAGED.rglob("*.xplane.pb")
    with pytest.raises(InputError, match="damaged") as error:
        open_file(path.read_bytes(), str(path))
    assert error.value.where == str(path)
    assert error.value.remedy


@pytest.mark.slow
def test_flipped_bytes() -> None:
    rng = random.Random(1)
    answered = 0
    for _ in range(FLIPPED):
        data = bytearray(rng.choice(SMALL).data)
        for _ in range(rng.choice([1, 1, 3, 20])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        answered += bool(attempt(bytes(data), "/logs/flipped.hlo_proto.pb"))
    assert 0 < answered < FLIPPED


@pytest.mark.slow
def test_flipped_bytes_of_profiles() -> None:
    rng = random.Random(2)
    files = [data for data in (path.read_bytes() for path in profiles()) if len(data) < 300_000]
    for _ in range(FLIPPED // 3):
        altered = bytearray(rng.choice(files))
        for _ in range(rng.choice([1, 10, 100])):
            altered[rng.randrange(len(altered))] = rng.randrange(256)
        attempt(bytes(altered), "/logs/flipped.xplane.pb")


@pytest.mark.slow
def test_programs_that_parse_and_make_no_sense() -> None:
    """Set fields of any message to unusual values; remove, repeat or swap list items."""
    rng = random.Random(3)
    protos = [program.proto for program in SMALL]
    answered = 0
    for _ in range(ALTERED):
        proto = HloProto()
        proto.CopyFrom(rng.choice(protos))
        fields = list(fields_of(proto))
        for _ in range(rng.choice([1, 4, 40])):
            alter(rng, *rng.choice(fields))
        answered += bool(attempt(proto.SerializeToString(), "/logs/altered.hlo_proto.pb"))
    assert answered > ALTERED // 2


def fields_of(message: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every set field, at any depth, with its message; maps are left unchanged."""
    for field, value in message.ListFields():
        if field.message_type is None:
            yield message, field
        elif not field.message_type.GetOptions().map_entry:
            yield message, field
            for below in value if field.is_repeated else [value]:
                yield from fields_of(below)


def alter(rng: random.Random, message: Any, field: Any) -> None:
    value = getattr(message, field.name)
    if not field.is_repeated:
        if field.message_type:
            message.ClearField(field.name)
        else:
            setattr(message, field.name, odd(rng, field))
    elif len(value):
        at = rng.randrange(len(value))
        if rng.random() < 0.3:
            del value[at]
        elif not field.message_type:
            value[at] = odd(rng, field)
        elif rng.random() < 0.5:
            value.add().CopyFrom(value[at])
        else:
            other, kept = value[rng.randrange(len(value))], type(value[at])()
            kept.CopyFrom(value[at])
            value[at].CopyFrom(other)
            other.CopyFrom(kept)


def odd(rng: random.Random, field: Any) -> Any:
    if field.type == field.TYPE_BYTES:
        return rng.choice(ODD_WORDS)
    number = rng.choice([*ODD_NUMBERS, *(rng.randrange(200) for _ in range(5))])
    if field.type == field.TYPE_BOOL:
        return bool(number & 1)
    if field.type == field.TYPE_INT32:
        return max(-(2**31), min(2**31 - 1, number))
    return number % 5 if field.type == field.TYPE_ENUM else number
