"""Pairs of items before and after."""

from __future__ import annotations

from tb_memplugin.analysis.compare.facts import take_pairs


def test_items_of_one_key_are_paired_and_the_others_stay() -> None:
    before, after = ["a1", "b1", "c1"], ["c2", "a2", "d2"]
    assert take_pairs(before, after, lambda item: item[0]) == [("a1", "a2"), ("c1", "c2")]
    assert (before, after) == (["b1"], ["d2"])


def test_the_partner_with_the_lowest_rank_is_taken_and_else_the_first() -> None:
    assert take_pairs(["a5"], ["a1", "a4"], lambda item: item[0]) == [("a5", "a1")]
    nearest = take_pairs(
        ["a5", "a1"], ["a1", "a4"], lambda item: item[0], lambda old, new: abs(int(old[1]) - int(new[1]))
    )
    assert nearest == [("a5", "a4"), ("a1", "a1")]
