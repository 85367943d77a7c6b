"""Device profiles: real ones against protobuf's own parser, and valid content that JAX never writes."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pprof_files import REAL, Frame, Sample, Writer, profile_of, samples_of, write

from tb_memplugin.analysis.usage.live_bytes import explained_bytes, peak
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import Axis, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import MAX_FRAMES
from tb_memplugin.questions.recording.summary import summary
from tb_memplugin.readers import open_file, pprof_profile

A, B, C = Frame("a"), Frame("b", "train.py", 2), Frame("c", "lib.py", 3)


def read(data: bytes, name: str = "memory.prof") -> list[Recording]:
    (part,) = open_file(data, name, run="r", host="h")
    return part.read()


def one(data: bytes) -> Recording:
    (recording,) = read(data)
    return recording


def rows_of(recording: Recording) -> Counter[tuple[object, ...]]:
    rows = recording.allocations
    assert recording.device_profile is not None
    return Counter(
        (
            rows.name[i],
            int(recording.device_profile.allocations[i]),
            int(rows.charge[i]),
            *recording.stacks.frames(int(rows.stack[i])),
        )
        for i in range(len(rows))
    )


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_every_sample_of_real_profiles(path: Path) -> None:
    samples = list(samples_of(path.read_bytes()))
    (recording,) = read(path.read_bytes(), path.name)
    assert rows_of(recording) == Counter((s.kind, s.count, s.bytes, *s.stack) for s in samples)
    assert {recording.memory} == {s.device for s in samples} - {""}
    assert peak(recording).bytes == sum(s.bytes for s in samples)
    assert recording.caveats == ()


def test_what_a_device_profile_says_of_itself() -> None:
    recording = one(profile_of([Sample([A, B], 300, 3), Sample([B], 7, kind="executable", device="")]))
    assert (recording.kind, recording.axis, recording.title) == ("device_profile", Axis.INSTANT, "memory.prof")
    said = summary(recording)
    assert (said["peak_bytes"], said["reserved_bytes"], said["allocations"]) == (307, 307, 4)
    assert [Role(role) for role in recording.allocations.role.tolist()] == [Role.UNKNOWN, Role.EXECUTABLE]
    assert recording.stacks.frames(int(recording.allocations.stack[0])) == [tuple(A), tuple(B)]


def test_a_recording_per_device_and_one_for_executables_of_none() -> None:
    devices = ["cuda:10", "cuda:2", "cuda:2"]
    samples = [Sample([A], 1 + i, device=device) for i, device in enumerate(devices)]
    found = read(profile_of([*samples, Sample([B], 50, kind="executable", device=""), Sample([C], 9, device="")]))
    assert [(r.memory, peak(r).bytes) for r in found] == [
        ("cuda:2", 5),
        ("cuda:10", 1),
        ("executables", 50),
        ("unknown device", 9),
    ]
    assert len({r.id for r in found}) == 4
    assert len({id(r.stacks) for r in found}) == 1


def test_executables_whose_size_the_runtime_does_not_know() -> None:
    samples = [Sample([A], 64, device="TPU_0"), Sample([A, B], -3, 3, "executable", ""), Sample([B], -1, 1, device="")]
    on_device, untold = read(profile_of(samples))
    assert peak(on_device).bytes == 64
    assert [(c.code, c.text.split(" allocations")[0].rpartition(" ")[2]) for c in on_device.caveats] == [
        ("size_unknown", "3")
    ]
    assert on_device.device_profile is not None and on_device.device_profile.allocations.sum() == 4
    assert peak(untold).bytes == 0 and [c.code for c in untold.caveats] == ["size_unknown"]


def test_unpacked_files_and_all_the_names(tmp_path: Path) -> None:
    data = profile_of([Sample([A], 12)])
    for name, content in (("a.prof", data), ("b.pprof", gzip.decompress(data)), ("c.pb.gz", data)):
        (tmp_path / name).write_bytes(content)
        (recording,) = listing_of_path(str(tmp_path / name)).recordings
        assert peak(recording).bytes == 12


def test_a_folder_of_them_is_a_run_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for i in (1, 2, 10):
        write(tmp_path, [Sample([A], i)], f"memory{i}.prof")
    listing = listing_of_path(str(tmp_path))
    assert {(r.title, peak(r).bytes) for r in listing.recordings} == {(f"memory{i}.prof", i) for i in (1, 2, 10)}


def test_a_stack_of_many_frames_and_a_recursion() -> None:
    deep = [Frame(f"f{i}") for i in range(5000)]
    recording = one(profile_of([Sample(deep, 1), Sample([A, B] * 200, 2)]))
    leaves = recording.allocations.stack.tolist()
    assert recording.stacks.frames(leaves[0]) == [tuple(f) for f in deep[:MAX_FRAMES]]
    assert len(recording.stacks.parent) == len(deep) + 400
    assert recording.stacks.frames(leaves[1]) == [tuple(A), tuple(B)] * 200


def test_a_stack_whose_numbers_are_not_packed_is_the_same_stack() -> None:
    samples = [Sample([A, B], size, kind="", device="") for size in (5, 7)]
    # Field 2 of the profile, 8 bytes long: locations 1 and 2, as a field each, then two values.
    plain = b"\x12\x08\x08\x01\x08\x02\x10\x01\x10\x09"
    recording = one(gzip.decompress(profile_of(samples)) + plain)
    assert rows_of(recording) == Counter(("", 1, size, tuple(A), tuple(B)) for size in (5, 7, 9))


def test_inlined_calls_are_frames_of_their_own() -> None:
    writer = Writer()
    writer.add(Sample([A, B], 5))
    line = writer.profile.location[0].line.add(line=8)
    line.function_id = writer.profile.function[1].id
    recording = one(writer.profile.SerializeToString())
    assert recording.stacks.frames(0)[:1] == [tuple(B)]
    leaf = int(recording.allocations.stack[0])
    assert recording.stacks.frames(leaf) == [tuple(A), ("b", "train.py", 8), tuple(B)]


def test_one_function_under_two_ids_is_one_frame() -> None:
    writer = Writer()
    writer.add(Sample([A], 5)).add(Sample([B], 6))
    for field in ("name", "filename"):
        setattr(writer.profile.function[1], field, getattr(writer.profile.function[0], field))
    writer.profile.location[1].line[0].line = A.line
    recording = one(writer.profile.SerializeToString())
    assert recording.allocations.stack.tolist() == [0, 0]


def test_what_a_broken_file_leaves_out_is_a_caveat() -> None:
    writer = Writer()
    for size in (1, 2, 4, 8):
        writer.add(Sample([A, B], size))
    del writer.profile.sample[0].value[:]
    writer.profile.sample[1].location_id[0] = 99
    writer.profile.sample[2].value[1] = 2**62
    writer.profile.location[0].id = writer.profile.location[1].id  # duplicate ids
    writer.profile.function[1].name = 10**6
    recording = one(writer.profile.SerializeToString())
    assert {c.code for c in recording.caveats} == {"broken_samples", "unknown_frames", "impossible_bytes"}
    assert peak(recording).bytes == 10
    assert recording.stacks.frames(int(recording.allocations.stack[0]))[0][0] == ""


def test_names_that_are_no_text_and_labels_that_are_missing() -> None:
    recording = one(profile_of([Sample([Frame("\udcff<b>")], 3, kind="", device="")]))
    assert recording.memory == "unknown device"
    assert recording.stacks.function[0] == "\ufffd<b>"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x1f\x8b" + b"x" * 20, "damaged"),
        (gzip.compress(b"\x12\x90", mtime=0), "damaged"),
        (profile_of([Sample([A], 1)])[:-9], "damaged"),
        (gzip.compress(b"", mtime=0), "nothing, not of memory"),
        (Writer([("cpu", "nanoseconds")]).profile.SerializeToString(), "cpu in nanoseconds, not of memory"),
        (b"not a profile at all", "damaged"),
    ],
    ids=["no gzip", "no message", "cut short", "empty", "of time", "text"],
)
def test_what_is_no_device_profile_is_refused_in_a_sentence(data: bytes, says: str) -> None:
    with pytest.raises(InputError) as raised:
        read(data)
    assert says in str(raised.value) and "memory.prof" in str(raised.value)


def test_little_that_unpacks_to_much_is_refused() -> None:
    with pytest.raises(InputError, match="too large"):
        read(gzip.compress(bytes(100 << 20)))


def test_of_several_types_the_default_one_or_the_last() -> None:
    types = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
    for default, expected in ((None, (3, 400)), ("alloc_space", (1, 200)), ("inuse_objects", (3, 400))):
        writer = Writer(types)
        writer.profile.sample.add(value=[1, 200, 3, 400])
        if default:
            writer.profile.default_sample_type = writer.text(default)
        recording = one(writer.profile.SerializeToString())
        assert recording.device_profile is not None
        assert (int(recording.device_profile.allocations[0]), peak(recording).bytes) == expected


@settings(max_examples=200, derandomize=True)
@given(st.data())
def test_any_damage_is_a_recording_or_one_clear_error(data: st.DataObject) -> None:
    raw = bytearray(gzip.decompress(profile_of([Sample([A, B], 300, 3), Sample([B, C, C], 7, 1, "executable", "")])))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = read(bytes(raw))
    except InputError:
        return
    for recording in found:
        assert summary(recording)["peak_bytes"] == int(explained_bytes(recording)[0])
        for leaf in recording.allocations.stack.tolist():
            recording.stacks.frames(leaf)


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_batches_have_the_answer_of_one(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage each byte in turn: the first damaged sample is the one that the error names."""
    data = gzip.decompress(profile_of([Sample([A, B] if i % 3 else [C], 10 + i, 1) for i in range(5)]))

    def answers() -> list[object]:
        return [
            answer(data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :])
            for at in range(len(data))
            for flip in (1, 128)
        ]

    whole = answers()
    monkeypatch.setattr(pprof_profile, "BATCH", batch)
    assert answers() == whole


def answer(data: bytes) -> object:
    try:
        return [(recording.memory, rows_of(recording), recording.caveats) for recording in read(data)]
    except InputError as error:
        return str(error)
