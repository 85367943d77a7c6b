"""Advice carried out, on compiles that are computed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import Any

import pytest

from tb_memplugin.fit.advice import COMBINED, AdviceToTry, Trial
from tb_memplugin.model.fit import Candidate, Knobs, LargestValue, MemoryLine, Outcome
from tb_memplugin.questions.fit.tried import ESTIMATED, tried_json, tried_lines

GIB = 2**30
LIMIT = 16 * GIB
VALUES = range(4, 1025, 4)
DONATE, SHARD, PARTS, BAD = "donate:state", "shard:data:state", "set:microbatches=2", "option:xla_no_such=True"


class Machine:
    """Compiles: 4 GiB of state, twice unless donated, a third of it if sharded, and 1/16 GiB per item."""

    def __init__(self) -> None:
        self.calls: list[tuple[Knobs, tuple[str, ...]]] = []

    def __call__(self, knobs: Knobs, changes: Sequence[str] = ()) -> Outcome:
        self.calls.append((knobs, tuple(changes)))
        found = Outcome(Candidate("f.py:step", "v5e:2x2", knobs, tuple(changes)), limit_bytes=LIMIT)
        batch = int(dict(knobs).get("batch", 64))
        if BAD in changes:
            return replace(found, error="INVALID_ARGUMENT: No such compile option: 'xla_no_such'")
        if PARTS in changes and batch % 8:
            return replace(found, error="TypeError: cannot reshape")
        state = (4 if DONATE in changes else 8) / (4 if SHARD in changes else 1)
        each = 1 / 32 if PARTS in changes else 1 / 16
        size = int((state + each * batch) * GIB)
        return replace(found, reserved_bytes=size, peak_bytes=size - GIB, run="-".join(["run", *changes]))


def answer(machine: Machine, value: int | None = 128, searched: str = "batch") -> LargestValue:
    last = machine((("remat", "none"), ("batch", 4 if value is None else value)))
    line = MemoryLine(8 * GIB, GIB // 16, 128, {})
    return LargestValue("v5e:2x2", (("remat", "none"),), searched, last if value else None, last, line=line)


def trial(machine: Machine, **changes: Any) -> Trial:
    return replace(Trial(answer(machine), VALUES, machine), **changes)


def test_a_change_is_compiled_at_the_answer_and_its_largest_value_is_searched_from_there() -> None:
    machine = Machine()
    (tried,) = trial(machine).run([AdviceToTry("Donate state", 4 * GIB, (DONATE,))])
    assert (tried.saving_bytes, tried.value, tried.new_value) == (4 * GIB, 128, 192)
    assert tried.after is not None and tried.after.reserved_bytes == 12 * GIB
    assert len(machine.calls) <= 7  # the answer, then the same value changed, the new one, and those above it
    assert "Donate state  4.000 GiB  128 → 192" in "\n".join(tried_lines([tried]))
    assert tried_json(tried)["new_value"] == 192 and tried_json(tried)["run"] == "run-donate:state"


def test_both_sides_of_the_new_value_are_compiled() -> None:
    machine = Machine()
    trial(machine).run([AdviceToTry("Donate state", 4 * GIB, (DONATE,))])
    values = {int(dict(knobs)["batch"]) for knobs, changes in machine.calls if changes}
    assert {192, 196} <= values


def test_what_does_not_compile_is_a_line_and_the_others_go_on() -> None:
    pieces = [
        AdviceToTry("Bad", 0, (BAD,)),
        AdviceToTry("Donate state", 0, (DONATE,)),
        AdviceToTry("Shard state", 0, (SHARD,)),
    ]
    bad, donated, sharded, together = trial(Machine()).run(pieces, jobs=3)
    assert "No such compile option" in bad.error and not bad.helps
    assert (donated.new_value, sharded.new_value) == (192, 224)
    assert (together.title, together.changes, together.new_value) == (COMBINED, (DONATE, SHARD), 240)
    lines = list(tried_lines([bad, donated, sharded, together]))
    assert lines[-1] == f"Bad: {bad.error}"
    assert tried_json(bad)["saving_bytes"] is None


def test_microbatches_are_searched_among_values_that_they_divide() -> None:
    machine = Machine()
    pieces = [AdviceToTry("Set microbatches=2", 0, (PARTS,)), AdviceToTry("Donate state", 0, (DONATE,))]
    tried, donated, _ = trial(machine, answer=answer(machine, 124), devices=4).run(pieces)
    text = "\n".join(tried_lines([tried, donated]))
    assert "at v5e:2x2 remat=none, batch=124" in text and "3.750 GiB at 120  124 → 256" in text
    assert tried.error == ""
    assert (dict(tried.before.candidate.knobs)["batch"], tried.saving_bytes) == (120, 120 * GIB // 32)
    assert tried.new_value == 256
    assert all(int(dict(knobs)["batch"]) % 8 == 0 for knobs, changes in machine.calls if PARTS in changes)


def test_without_code_to_change_the_value_is_estimated_on_the_line_and_not_beyond_the_range() -> None:
    machine = Machine()
    small, large = trial(machine).run([AdviceToTry("Offload", GIB), AdviceToTry("Remat", 1000 * GIB)])
    assert (small.new_value, large.new_value) == (144, VALUES[-1])
    assert not small.is_compiled and len(machine.calls) == 1
    lines = list(tried_lines([small, large]))
    assert lines.index(ESTIMATED) == 3 and "128 → about 144" in lines[5]
    assert large.at_end and lines[6].endswith("128 → at least 1024, the end of the range")


def test_what_is_compiled_and_what_is_estimated_are_apart() -> None:
    pieces = [AdviceToTry("Offload", GIB), AdviceToTry("Donate state", 0, (DONATE,))]
    lines = list(tried_lines(trial(Machine()).run(pieces)))
    below = lines.index(ESTIMATED)
    assert any("Donate state" in line for line in lines[:below])
    assert any("Offload" in line for line in lines[below:])


def test_a_compiled_value_at_the_end_of_the_range_says_so() -> None:
    machine = Machine()
    (tried,) = trial(machine, values=range(4, 161, 4)).run([AdviceToTry("Donate state", 4 * GIB, (DONATE,))])
    assert tried.at_end and tried_json(tried)["at_end"]
    assert "128 → at least 160, the end of the range" in "\n".join(tried_lines([tried]))


def test_where_memory_follows_no_line_the_value_is_estimated_from_what_is_known() -> None:
    machine = Machine()
    found = replace(answer(machine), line=None)
    known = {4: 8 * GIB, 128: 16 * GIB - 4 * GIB // 16}
    (near,) = trial(machine, answer=found, known=known).run([AdviceToTry("Offload", GIB)])
    (unknown,) = trial(machine, answer=found).run([AdviceToTry("Offload", GIB)])
    assert (near.new_value, unknown.new_value) == (144, 128)


def test_where_nothing_fits_a_change_may_make_it_fit() -> None:
    machine = Machine()
    nothing = answer(machine, None)
    last = nothing.last
    low = replace(last, limit_bytes=6 * GIB)
    tight = trial(
        machine,
        answer=replace(nothing, last=low),
        compile=lambda knobs, changes: replace(machine(knobs, changes), limit_bytes=6 * GIB),
    )
    pieces = [AdviceToTry("Donate", 0, (DONATE,)), AdviceToTry("Shard", 0, (SHARD,)), AdviceToTry("X", GIB)]
    donated, sharded, sorry = tight.run(pieces)[:3]
    assert (donated.value, donated.new_value, sharded.new_value, sorry.new_value) == (None, 32, 64, None)


def test_without_a_search_or_a_limit_only_bytes_are_compared() -> None:
    machine = Machine()
    last = replace(machine((("batch", 64),)), limit_bytes=None)
    fixed = LargestValue("cpu:1", (("batch", 64),), "", last, last)
    (tried,) = Trial(fixed, [], machine).run([AdviceToTry("Donate", 0, (DONATE,))])
    assert (tried.saving_bytes, tried.new_value) == (4 * GIB, None)
    text = list(tried_lines([tried]))
    assert text[2].split() == ["change", "saves"]


def test_a_change_that_needs_more_memory_is_not_part_of_what_is_combined() -> None:
    def worse(knobs: Knobs, changes: Sequence[str]) -> Outcome:
        found = machine(knobs, changes)
        assert found.reserved_bytes is not None
        return replace(found, reserved_bytes=found.reserved_bytes + 20 * GIB * (SHARD in changes))

    machine = Machine()
    pieces = [AdviceToTry("Donate state", 0, (DONATE,)), AdviceToTry("Shard state", 0, (SHARD,))]
    _, sharded = trial(machine, compile=worse).run(pieces)
    assert sharded.new_value is None and sharded.saving_bytes is not None and sharded.saving_bytes < 0
    text = "\n".join(tried_lines([sharded]))
    assert "below 128" in text
    assert "none: needs 14.00 GiB more" in text


def test_without_advice_a_line_says_so() -> None:
    assert list(tried_lines([]))[1].startswith("Nothing to try")


@pytest.mark.parametrize("error", ["", "ValueError: no"])
def test_without_a_program_nothing_is_tried(error: str) -> None:
    failed = Outcome(Candidate("f.py:step", "v5e:2x2"), error=error)
    machine = Machine()
    assert Trial(LargestValue("v5e:2x2", (), "", None, failed), [], machine).run([AdviceToTry("A", 1, (DONATE,))]) == []


def test_pieces_that_were_stopped_are_left_out() -> None:
    def stopped(knobs: Knobs, changes: Sequence[str]) -> Outcome:
        if SHARD in changes:
            raise CancelledError
        return machine(knobs, changes)

    machine = Machine()
    pieces = [AdviceToTry("Shard state", 0, (SHARD,)), AdviceToTry("Donate state", 0, (DONATE,))]
    assert [one.title for one in trial(machine, compile=stopped).run(pieces)] == ["Donate state"]
