from __future__ import annotations

import dataclasses

import pytest
from support.advised import MIB, given, kinds
from support.recordings import Row, recording

from tb_memplugin.analysis.advice import AdviceKind
from tb_memplugin.model.recording import Recording


def program(largest: int, others: int = 10) -> Recording:
    """Return one buffer of so many MiB, and others of 4 MiB; all are live at position 2, half of them at 5."""
    small = [Row(4 * MIB, 0, 4 if i % 2 else 8, offset=(largest + 4 * i) * MIB) for i in range(others)]
    return recording([Row(largest * MIB, 2, 3, name="logits"), *small], 8)


def test_one_tensor_is_most_of_the_peak() -> None:
    advice = given(program(100), AdviceKind.OVERSIZED)
    assert advice.title == "One tensor is 71% of the peak"
    assert advice.sentence.startswith("logits, f32[4]{0}, takes 100 MiB of 140 MiB.")
    assert advice.rows.tolist() == [0]
    assert advice.saving_bytes == 100 * MIB * 15 // 16  # computed in 16 parts


def test_without_it_another_place_is_the_peak() -> None:
    before = recording([Row(100 * MIB, 2, 3), *[Row(4 * MIB, 0, 8) for _ in range(10)], Row(20 * MIB, 5, 6)], 8)
    advice = given(before, AdviceKind.OVERSIZED)
    assert (advice.saving_bytes, advice.saving.before) == (80 * MIB, 140 * MIB)


@pytest.mark.parametrize("made", [program(30), program(100, others=3)])
def test_one_of_many_or_of_few_is_no_mistake(made: Recording) -> None:
    assert AdviceKind.OVERSIZED not in kinds(made)


def test_half_of_a_device_is_too_much_for_one_tensor_whatever_else_there_is() -> None:
    made = dataclasses.replace(program(100, others=3), capacity=150 * MIB)
    assert given(made, AdviceKind.OVERSIZED).title == "One tensor is 67% of the capacity"
    assert AdviceKind.OVERSIZED not in kinds(dataclasses.replace(program(100), capacity=1000 * MIB))


def test_more_than_any_device_has_is_too_much_whatever_device_it_is_for() -> None:
    advice = given(program(400 * 1024, others=3), AdviceKind.OVERSIZED)
    assert advice.title == "One tensor is 139% of the largest accelerator's memory"
    assert "takes 400 GiB; the largest accelerator's memory is 288 GiB." in advice.sentence
    assert AdviceKind.OVERSIZED not in kinds(program(200 * 1024, others=3))
