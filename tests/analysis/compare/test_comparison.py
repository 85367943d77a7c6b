"""Comparisons of two recordings: no change against itself, B to A mirrors A to B, and every byte is counted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.pprof_files import Frame, Sample, profile_of
from support.recordings import Row, recording

from tb_memplugin.analysis.compare.comparison import CompareBy, Comparison, compare
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import UNEXPLAINED
from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import RecordingKind, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import ReportedMemory, Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.questions.compare.comparison import headline
from tb_memplugin.readers import open_file


@dataclass(frozen=True)
class Thing:
    """Return a buffer that is live throughout."""

    size: int
    shape: str = "f32[8]"
    op_name: str = "layer_0/dot"
    op: str = "dot"
    line: int = -1  # of model.py, in layer, called by main; -1: no frame
    role: Role = Role.TEMPORARY
    name: str = "fusion.1"


def made(things: list[Thing], shift: int = 0, folder: str = "/home/a") -> Recording:
    lines = sorted({thing.line for thing in things if thing.line >= 0})
    rows = [
        Row(t.size, 0, 1, role=t.role, name=t.name, stack=1 + lines.index(t.line) if t.line >= 0 else -1)
        for t in things
    ]
    found = recording(rows, 1)
    return replace(
        found,
        allocations=replace(
            found.allocations,
            shape=Text.of([t.shape for t in things]),
            op_name=Text.of([t.op_name for t in things]),
            op=Text.of([t.op for t in things]),
        ),
        stacks=Stacks(
            parent=np.array([-1, *[0] * len(lines)], np.int32),
            function=Text.of(["main", *["layer"] * len(lines)]),
            file=Text.of([f"{folder}/train.py", *[f"{folder}/model.py"] * len(lines)]),
            line=np.array([5, *(line + shift for line in lines)], np.int32),
        ),
    )


Entry = tuple[int, int, int, int, bool]


def entries(found: Comparison) -> list[Entry]:
    e = found.entries
    columns = (e.bytes_a, e.bytes_b, e.allocations_a, e.allocations_b, e.reshaped)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def changes(found: Comparison) -> list[Entry]:
    return [entry for entry in entries(found) if entry[0] != entry[1]]


things = st.builds(
    Thing,
    st.integers(1, 100),
    st.sampled_from(["f32[8]", "f32[16]", "bf16[8]"]),
    st.sampled_from(["", "layer_0/dot", "layer_1/dot"]),
    st.sampled_from(["", "dot", "add"]),
    st.sampled_from([-1, 10, 20, 30, 31]),
    st.sampled_from([Role.TEMPORARY, Role.PARAMETER]),
    st.sampled_from(["fusion.1", "fusion.22", "copy.3", "train.py:37", "train.py:61"]),
)
lists = st.lists(things, min_size=1, max_size=12)
few = settings(max_examples=150, derandomize=True)


@few
@given(lists, st.sampled_from(CompareBy))
def test_against_itself_nothing_changes(these: list[Thing], by: CompareBy) -> None:
    found = compare(made(these), made(these), by=by)
    assert changes(found) == []
    assert not found.entries.reshaped.any()
    assert (found.entries.row_a >= 0).all() and (found.entries.row_b >= 0).all()
    assert all(step.bytes_a == step.bytes_b for step in found.steps)
    assert sum(step.bytes_a for step in found.steps) == found.total_a


@few
@given(lists, lists, st.sampled_from(CompareBy))
def test_the_other_way_round_is_the_mirror_image(a: list[Thing], b: list[Thing], by: CompareBy) -> None:
    there, back = compare(made(a), made(b), by=by), compare(made(b), made(a), by=by)
    assert sorted((y, x, n, m, reshaped) for x, y, m, n, reshaped in entries(there)) == entries(back)
    assert sorted((s.bytes_b, s.bytes_a) for s in there.steps) == sorted((s.bytes_a, s.bytes_b) for s in back.steps)


@few
@given(lists, lists, st.sampled_from(CompareBy))
def test_no_byte_is_lost_and_the_steps_lead_from_one_total_to_the_other(
    a: list[Thing], b: list[Thing], by: CompareBy
) -> None:
    found = compare(made(a), made(b), by=by)
    assert (found.total_a, found.total_b) == (sum(t.size for t in a), sum(t.size for t in b))
    assert (found.entries.bytes_a.sum(), found.entries.bytes_b.sum()) == (found.total_a, found.total_b)
    assert (found.entries.allocations_a.sum(), found.entries.allocations_b.sum()) == (len(a), len(b))
    assert found.total_a + sum(s.bytes_b - s.bytes_a for s in found.steps) == found.total_b


@few
@given(lists, lists, st.sampled_from(CompareBy))
def test_the_entries_of_a_step_add_up_to_it(a: list[Thing], b: list[Thing], by: CompareBy) -> None:
    found = compare(made(a), made(b), by=by)
    count = len(found.steps)
    assert np.bincount(found.step_of, found.entries.bytes_a, count).tolist() == [step.bytes_a for step in found.steps]
    assert np.bincount(found.step_of, found.entries.bytes_b, count).tolist() == [step.bytes_b for step in found.steps]


@few
@given(lists, st.randoms(use_true_random=False), st.integers(0, 50))
def test_order_ids_names_folders_and_shifted_lines_do_not_matter(these: list[Thing], random: object, by: int) -> None:
    other = list(these)
    random.shuffle(other)  # type: ignore[attr-defined]
    renamed = [t if ":" in t.name else replace(t, name=t.name.replace("1", "7").replace("2", "8")) for t in other]
    found = compare(made(these), made(renamed, shift=by, folder="/root/b"))
    assert changes(found) == []
    assert not found.entries.reshaped.any()


def of_line(found: Comparison, size: int) -> tuple[int, int]:
    """Return (bytes in A, bytes in B) of the entry with `size` bytes in either."""
    e = found.entries
    (at,) = np.flatnonzero((e.bytes_a == size) | (e.bytes_b == size))
    return int(e.bytes_a[at]), int(e.bytes_b[at])


def test_a_line_put_in_between_is_new_and_those_after_it_are_as_they_were() -> None:
    def line(size: int, at: int, op: str) -> Thing:
        return Thing(size, op_name="", op=op, line=at)

    before = [line(100, 10, "dot"), line(200, 11, "add"), line(300, 12, "exp")]
    after = [line(100, 10, "dot"), line(70, 11, "tanh"), line(200, 12, "add"), line(300, 13, "exp")]
    found = compare(made(before), made(after), by=CompareBy.SOURCE)
    assert entries(found) == [
        (0, 70, 0, 1, False),
        (100, 100, 1, 1, False),
        (200, 200, 1, 1, False),
        (300, 300, 1, 1, False),
    ]
    assert found.steps[0].label == "layer (/home/a/model.py:11)"
    assert (found.steps[0].bytes_a, found.steps[0].bytes_b) == (0, 70)


def test_a_place_that_changed_its_shapes_is_one_entry() -> None:
    before = [Thing(100, "f32[100]"), Thing(5, "s32[]")]
    after = [Thing(200, "f32[200]"), Thing(5, "s32[]")]
    assert entries(compare(made(before), made(after))) == [(5, 5, 1, 1, False), (100, 200, 1, 1, True)]


def test_what_only_a_compiler_named_is_no_place_that_could_change_its_shape() -> None:
    before, after = [Thing(100, "f32[100]", "", "copy")], [Thing(4, "s32[]", "", "copy")]
    assert entries(compare(made(before), made(after))) == [(0, 4, 0, 1, False), (100, 0, 1, 0, False)]


def test_only_in_one_of_them() -> None:
    found = compare(made([Thing(7, op_name="a")]), made([Thing(9, op_name="b")]))
    assert entries(found) == [(0, 9, 0, 1, False), (7, 0, 1, 0, False)]
    assert found.entries.row_a.tolist() == [-1, 0]
    assert found.entries.row_b.tolist() == [0, -1]


def test_two_moments_of_one_recording() -> None:
    one = recording([Row(10, 0, 2, name="a"), Row(4, 1, 3, name="b")], 3)
    found = compare(one, one, 0, 2)
    assert (found.total_a, found.total_b) == (10, 4)
    assert (found.position_a, found.position_b) == (0, 2)
    assert compare(one, one).position_a == peak(one).position == 1


def test_the_steps_are_roles_lines_or_layers() -> None:
    a = [Thing(10, role=Role.PARAMETER, op_name="params['layer_0']['w']", op="parameter"), Thing(5, line=10)]
    b = [Thing(10, role=Role.PARAMETER, op_name="params['layer_0']['w']", op="parameter"), Thing(25, line=10)]
    steps = {by: [(s.label, s.bytes_a, s.bytes_b) for s in compare(made(a), made(b), by=by).steps] for by in CompareBy}
    assert steps[CompareBy.ROLE] == [("temporary", 5, 25), ("parameter", 10, 10)]
    assert steps[CompareBy.SOURCE] == [("layer (/home/a/model.py:10)", 5, 25), ("no Python line", 10, 10)]
    assert steps[CompareBy.MODEL] == [("forward / layer_0", 5, 25), ("arguments / params / layer_0", 10, 10)]


def test_without_a_stack_a_line_s_name_is_the_line() -> None:
    a, b = [Thing(10, name="train.py:61"), Thing(5, name="fusion.1")], [Thing(30, name="train.py:61")]
    steps = [(s.label, s.bytes_a, s.bytes_b) for s in compare(made(a), made(b), by=CompareBy.SOURCE).steps]
    assert steps == [("train.py:61", 10, 30), ("no Python line", 5, 0)]


def live_arrays(*sizes: tuple[str, int]) -> Recording:
    return made([Thing(size, f"({size},)", "", "", name=name) for name, size in sizes])


def test_arrays_named_after_two_lines_are_two_sites() -> None:
    a, b = live_arrays(("train.py:61", 48), ("train.py:61", 4)), live_arrays(("train.py:37", 4), ("train.py:61", 2))
    found = compare(a, b, by=CompareBy.SOURCE)
    assert [(s.label, s.bytes_a, s.bytes_b) for s in found.steps] == [("train.py:37", 0, 4), ("train.py:61", 52, 2)]
    assert entries(found) == [(0, 4, 0, 1, False), (52, 2, 2, 1, True)]


def test_the_headline_names_the_shape_where_another_change_has_the_same_name() -> None:
    same = Thing(9, "(9,)", "", "", name="train.py:61")
    a = made([same, Thing(48, "(48,)", "", "", name="train.py:61"), Thing(4, "(4,)", "", "", name="train.py:61")])
    b = made([same, same, same, Thing(48, "(48,)", "", "", name="train.py:61")] * 2)
    assert headline(a, b, compare(a, b)).endswith("The largest change is +48 B of train.py:61, (48,).")


def test_a_line_that_moved_keeps_the_arrays_that_are_named_after_it() -> None:
    before = live_arrays(("train.py:10", 8), ("train.py:12", 16))
    after = live_arrays(("train.py:10", 8), ("train.py:11", 3), ("train.py:13", 16))
    found = compare(before, after, by=CompareBy.SOURCE)
    assert [s.label for s in found.steps] == ["train.py:11", "train.py:13, was 12", "train.py:10"]
    assert changes(found) == [(0, 3, 0, 1, False)]


def test_two_moments_of_one_recording_never_pair_two_lines() -> None:
    one = recording([Row(10, 0, 1, stack=1), Row(4, 1, 2, stack=2)], 2)
    stacks = Stacks(
        np.array([-1, 0, 0], np.int32),
        Text.of(["main", "layer", "layer"]),
        Text.of(["train.py", "model.py", "model.py"]),
        np.array([5, 10, 20], np.int32),
    )
    one = replace(one, stacks=stacks)
    steps = compare(one, one, 0, 1, CompareBy.SOURCE).steps
    assert [(s.label, s.bytes_a, s.bytes_b) for s in steps] == [
        ("layer (model.py:20)", 0, 4),
        ("layer (model.py:10)", 10, 0),
    ]


def test_what_no_row_explains_is_a_step() -> None:
    one = made([Thing(10)])

    def said(in_use: int) -> Recording:
        column = [np.array([n], np.int64) for n in (in_use, 0, 0, in_use)]
        return replace(one, reported=ReportedMemory(column[0], column[1], column[2], column[3], np.array([np.nan])))

    found = compare(said(15), said(40))
    assert found.steps[0] == (UNEXPLAINED, 5, 30)
    assert (found.total_a, found.total_b) == (15, 40)
    words = headline(said(15), said(40), found)
    assert words == "25 B (+166.7%) more: 40 B in B, 15 B in A. The largest change is +25 B unexplained by allocations."


def test_what_grew_a_thousandfold_is_said_in_times() -> None:
    a, b = made([Thing(10)]), made([Thing(30 * 1024)])
    assert headline(a, b, compare(a, b)) == (
        "30.0 KiB more, 3,072 times as much: 30.0 KiB in B, 10 B in A. The largest change is +30.0 KiB of layer_0/dot."
    )


def test_device_profiles_match_by_the_whole_stack_and_apart_by_kind() -> None:
    def read(samples: list[Sample]) -> Recording:
        (part,) = open_file(profile_of(samples), "m.prof")
        (found,) = part.read()
        return found

    make, one, other = Frame("make", "lib.py"), Frame("main", "a.py", 3), Frame("main", "a.py", 9)
    a = read([Sample([make, one], 10), Sample([make, other], 20), Sample([make, other], 7, 1, "executable", "")])
    b = read([Sample([make, one], 10), Sample([make, other], 50, 2), Sample([make, other], 5, 2)])
    assert entries(compare(a, b)) == [(7, 0, 1, 0, False), (10, 10, 1, 1, False), (20, 55, 1, 4, False)]


def test_two_kinds_are_not_compared() -> None:
    with pytest.raises(InputError, match="Recordings of two kinds"):
        compare(made([Thing(1)]), replace(made([Thing(1)]), kind=RecordingKind.ALLOCATOR))


def test_empty_recordings_compare() -> None:
    nothing = recording([], 0)
    assert compare(nothing, nothing).total_b == 0
    assert entries(compare(nothing, made([Thing(3)]))) == [(0, 3, 0, 1, False)]
