"""Pairs of compiled programs that differ by one change: the cause that is named is that change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from support.changed import changed_program
from support.servers import DEMO

from tb_memplugin.analysis.compare.causes import explain_change
from tb_memplugin.analysis.compare.facts import facts
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.changes import ArrayFacts, ChangeCauseKind, Explanation, MemoryFacts
from tb_memplugin.questions.compare.causes import cause_text
from tb_memplugin.readers.hlo import read_hlo


@cache
def stored(name: str, target: str = "v5e") -> MemoryFacts:
    return facts(next(r for r in read_hlo(changed_program(name, target), source=name) if r.is_main_memory))


def explained(before: str, after: str) -> Explanation:
    return explain_change(stored(before), stored(after))


def moved(size: str) -> str:
    return f", with \N{MINUS SIGN}{size} of other arrays as the peak moved"


SENTENCES = [
    ("base", "not_donated", ChangeCauseKind.NOT_DONATED, "donated buffer `state` is copied now (12 arrays, +3.00 MiB)"),
    (
        *("recomputed", "base", ChangeCauseKind.SAVED),
        "`layer_*` saves one more activation (`f32[32768,1024]`, 3 layers, +226 MiB)" + moved("158 MiB"),
    ),
    (
        *("scan_recomputed", "scan", ChangeCauseKind.SAVED),
        "`layer` saves 7 more activations (the largest `f32[3,32768,1024]`, +2.44 GiB)",
    ),
    (
        *("base", "replicated", ChangeCauseKind.SHARDING),
        "argument `state` is replicated now (was split over all devices; "
        "12 arrays and those computed from them, +7.50 MiB)" + moved("2.50 MiB"),
    ),
    (
        *("base", "more_layers", ChangeCauseKind.LAYERS),
        "there are 4 layers `layer_*` now (3 before, +162 MiB)" + moved("32.5 MiB"),
    ),
    (
        *("half", "base", ChangeCauseKind.DTYPE),
        "arguments `batch`, `state` are `f32` now (was `bf16`; 14 arrays and those computed from them, +290 MiB)",
    ),
    (
        *("microbatches", "base", ChangeCauseKind.MICROBATCHES),
        "the gradient is computed at once now (was in 4, +356 MiB)" + moved("68.1 MiB"),
    ),
    (
        *("base", "larger_batch", ChangeCauseKind.SHAPE),
        "dimension 0 of input `batch` is 65536 now (was 32768; 2 arrays and those computed from them, +644 MiB), "
        "with +132 MiB of other arrays as the peak moved",
    ),
    (
        *("scan", "scan_more_layers", ChangeCauseKind.SHAPE),
        "dimension 0 of argument `state` is 4 now (was 3; 4 arrays and those computed from them, +848 MiB)",
    ),
]


@pytest.mark.parametrize(("before", "after", "kind", "sentence"), SENTENCES)
def test_the_change_is_the_only_cause_that_raised_the_peak(
    before: str, after: str, kind: ChangeCauseKind, sentence: str
) -> None:
    raised = [cause for cause in explained(before, after).causes if cause.bytes > 0]
    assert [(cause.kind, cause_text(cause)) for cause in raised] == [(kind, sentence)]


@pytest.mark.parametrize(("before", "after", "kind", "sentence"), SENTENCES)
def test_the_change_back_is_named_as_well(before: str, after: str, kind: ChangeCauseKind, sentence: str) -> None:
    lowered = min(explained(after, before).causes, key=lambda cause: cause.bytes)
    assert lowered.bytes < 0
    assert lowered.kind is (ChangeCauseKind.DONATED if kind is ChangeCauseKind.NOT_DONATED else kind)


@pytest.mark.parametrize(("before", "after", "kind", "sentence"), SENTENCES)
def test_causes_and_the_rest_add_up(before: str, after: str, kind: ChangeCauseKind, sentence: str) -> None:
    found = explained(before, after)
    grown = stored(after).peak_bytes - stored(before).peak_bytes
    assert sum(cause.bytes for cause in found.causes) + found.unexplained_bytes == grown


@pytest.mark.parametrize("name", sorted({row[0] for row in SENTENCES} | {row[1] for row in SENTENCES}))
def test_an_identical_compile_has_no_cause(name: str) -> None:
    again = facts(next(r for r in read_hlo(changed_program(name), source="") if r.is_main_memory))
    assert explain_change(stored(name), again) == Explanation()


@pytest.mark.parametrize(("before", "after"), [("host", "small_batch"), ("small_batch", "host")])
def test_arguments_that_moved_between_memories_are_neither_new_nor_gone(before: str, after: str) -> None:
    (cause,) = explained(before, after).causes
    assert (cause.kind, cause.names, cause.arrays) == (ChangeCauseKind.MEMORY, ("state/mu/layer_*",), 6)
    assert cause.bytes == stored(after).peak_bytes - stored(before).peak_bytes
    now = "in `HBM` now (was in another memory;" if after == "small_batch" else "in another memory now (was in `HBM`;"
    assert cause_text(cause).startswith(f"argument `state/mu/layer_*` is {now}")


def test_a_second_change_is_stated_and_not_counted_with_the_first() -> None:
    found = {cause.kind: cause for cause in explained("microbatches", "more_layers").causes}
    assert found.keys() == {ChangeCauseKind.LAYERS, ChangeCauseKind.MICROBATCHES}
    assert not any(cause.moved_bytes for cause in found.values())


@pytest.mark.parametrize("target", ["v5e", "h100"])
def test_microbatches_are_counted(target: str) -> None:
    assert [stored(name, target).microbatches for name in ("base", "microbatches")] == [1, 4]
    (cause,) = explain_change(stored("microbatches", target), stored("base", target)).causes
    assert cause.kind is ChangeCauseKind.MICROBATCHES
    grown = stored("base", target).peak_bytes - stored("microbatches", target).peak_bytes
    assert cause.bytes == pytest.approx(grown, rel=0.02)


def test_renamed_arguments_and_layers_change_nothing() -> None:
    found = explained("base", "renamed")
    assert (found.causes, found.differences) == ((), ())
    (cause,) = explained("renamed", "not_donated").causes
    assert cause_text(cause) == "donated buffer `state` is copied now (12 arrays, +3.00 MiB)"


def test_of_several_states_of_an_optimizer_the_new_one_is_named() -> None:
    (cause,) = explained("base", "second_moment").causes
    assert cause_text(cause) == "argument `state/nu/layer_*` is new (6 arrays, the largest `f32[1024,64]`, +1.50 MiB)"
    trace = replace_paths(stored("base"), "state/mu", "state/trace")
    (cause,) = explain_change(trace, stored("second_moment")).causes
    assert cause.names == ("state/nu/layer_*",) and cause.bytes == 3 << 19


def test_a_batch_that_is_replicated_now_is_no_larger_batch() -> None:
    found = {cause.kind: cause for cause in explained("base", "replicated_batch").causes}
    assert ChangeCauseKind.SHAPE not in found
    text = "argument `batch` is replicated now (was split over all devices; 2 arrays and those computed from"
    assert cause_text(found[ChangeCauseKind.SHARDING]).startswith(text)
    assert found[ChangeCauseKind.SHARDING].bytes > 2**30


def test_a_copy_of_an_argument_that_is_replicated_now_counts_with_it() -> None:
    after, size = stored("replicated_batch"), 4 << 27
    copy = ArrayFacts("dynamic_update_slice", "", "state", "f32[131072,256]", 4, 1, size)
    found = [explain_change(stored("base"), each) for each in (after, replace(after, arrays=(*after.arrays, copy)))]
    one, other = (next(c.bytes for c in each.causes if c.kind is ChangeCauseKind.SHARDING) for each in found)
    assert other - one == size


def test_activations_of_a_scan_are_found_where_the_peak_is_before_they_are_written() -> None:
    """Check a stack whose memory is still what it was initialized with, as GPU programs have."""

    def initialized(facts: MemoryFacts) -> MemoryFacts:
        rows = (replace(row, role="temporary") if row.role == "activation" else row for row in facts.arrays)
        return replace(facts, arrays=tuple(rows))

    found = explain_change(initialized(stored("scan_recomputed")), initialized(stored("scan")))
    assert found.causes == explained("scan_recomputed", "scan").causes


@pytest.mark.parametrize("name", ["w1", "w2"])
def test_names_that_differ_by_a_digit_are_two_arguments(name: str) -> None:
    before = replace_paths(replace_paths(stored("base"), "/up", "/w1"), "/down", "/w2")
    rows = [replace(row, donated_bytes=0) if f"mu/layer_*/{name}" in row.path else row for row in before.arguments]
    (cause,) = explain_change(before, replace(before, arguments=tuple(rows))).causes
    assert (cause.kind, cause.names, cause.arrays) == (ChangeCauseKind.NOT_DONATED, (f"state/mu/layer_*/{name}",), 3)


def test_arrays_of_two_types_that_have_two_others_now() -> None:
    def arrays(*types: str) -> MemoryFacts:
        rows = [ArrayFacts("loss/mul", "", "temporary", f"{name}[512,512]", 1, 1, 1 << 20) for name in types]
        return replace(stored("base"), arrays=(*stored("base").arrays, *rows))

    found = explain_change(arrays("f16", "bf16"), replace(arrays("f32", "f64"), peak_bytes=1 << 40))
    assert {cause.kind for cause in found.causes} <= {ChangeCauseKind.DTYPE}


def replace_paths(facts: MemoryFacts, old: str, new: str) -> MemoryFacts:
    def renamed(rows: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(replace(row, path=row.path.replace(old, new)) for row in rows)

    return replace(facts, arguments=renamed(facts.arguments), arrays=renamed(facts.arrays))


def demo(run: str) -> MemoryFacts:
    """Return the facts of the largest program of a run of the demo."""
    recordings = listing_of_path(str(DEMO / run)).recordings
    return facts(next(r for r in recordings if r.is_main_memory and r.kind.has_program))


def test_microbatches_are_found_and_not_what_is_saved() -> None:
    found = explain_change(demo("v5e_mended"), demo("v5e_out_of_memory"))
    assert [cause_text(cause) for cause in found.causes] == [
        "the gradient is computed at once now (was in 4, +19.6 GiB)" + moved("4.05 GiB"),
        "donated buffer `opt_state` is copied now (35 arrays, +608 MiB)",
        "donated buffer `params` is copied now (17 arrays, +304 MiB)",
    ]


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("base", "not_donated", "donated buffer `state` is copied now (12 arrays, +3.00 MiB)"),
        (
            *("recomputed", "base"),
            "`layer_*` saves 2 more activations (the largest `f32[32768,1024]`, 3 layers, +582 MiB)" + moved("186 MiB"),
        ),
        ("base", "more_layers", "there are 4 layers `layer_*` now (3 before, +290 MiB)"),
    ],
)
def test_programs_for_gpu_whose_arguments_are_small_beside_the_peak(before: str, after: str, sentence: str) -> None:
    found = explain_change(stored(before, "h100"), stored(after, "h100"))
    assert [cause_text(cause) for cause in found.causes if cause.bytes > 0] == [sentence]


def test_microbatches_are_found_where_the_compiler_names_arrays_differently() -> None:
    before = demo("v5e_mended")
    arrays = tuple(row if row.role != "activation" else replace(row, path="custom-call") for row in before.arrays)
    found = explain_change(replace(before, arrays=arrays), demo("v5e_out_of_memory"))
    assert found.causes[0].kind is ChangeCauseKind.MICROBATCHES and found.causes[0].arrays
    assert found.causes[0].bytes - found.causes[0].moved_bytes > 10 * 2**30


def test_arrays_of_two_dimensions_agree_in_one_by_chance() -> None:
    found = explain_change(demo("h100_train_step"), demo("v5e_train_step"))
    assert ChangeCauseKind.SHAPE not in {cause.kind for cause in found.causes}


def test_arguments_with_other_names_are_neither_new_nor_gone() -> None:
    before, after = stored("base"), stored("not_donated")
    other = replace_paths(before, "layer_*", "CheckpointLayer_*")
    kinds = {cause.kind for cause in explain_change(other, after).causes}
    assert not kinds & {ChangeCauseKind.ARGUMENT_ADDED, ChangeCauseKind.ARGUMENT_REMOVED}
