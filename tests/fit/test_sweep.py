"""Rows of a fit, with compiles that are computed."""

from __future__ import annotations

from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tb_memplugin.errors import InputError
from tb_memplugin.fit.knobs import Varied
from tb_memplugin.fit.sweep import Sweep, choices_of
from tb_memplugin.model.fit import Candidate, Outcome
from tb_memplugin.questions.asking.asked import Asked
from tb_memplugin.questions.fit.answer import fit_answer
from tb_memplugin.questions.fit.words import lines, verdict
from tb_memplugin.readers.fit_record import read_outcome
from tb_memplugin.targets import Target, slices

GIB = 2**30
V5E = Target("v5e", (2, 2))
BATCH = Varied("batch", range(8, 1025, 8), searched=True)


def compiled(candidate: Candidate) -> Outcome:
    """Compile: 3.6 GiB and 0.2 per item, shared by 4 devices in a slice of 4; from 52 on the compiler recomputes."""
    knobs = dict(candidate.knobs)
    batch, each = int(knobs.get("batch", 8)), 0.05 if knobs.get("remat") == "full" else 0.2
    devices = {"v5e:1x1": 1, "v5e:2x2": 4, "v5e:2x4": 8}.get(candidate.target, 16)
    natural = 3.6 + each * batch * 4 / devices
    repeated = int(max(natural - 14, 0) * 10)
    reserved = int((natural if natural < 14 else 14 + (natural - 14) / 4) * GIB)
    roles = {"parameter": int(3.6 * GIB), "activation": reserved - int(3.6 * GIB)}
    return Outcome(
        candidate,
        2.5,
        reserved,
        reserved,
        63 * GIB // 4,
        rematerialized=repeated,
        roles=roles,
        versions={"jax": "0.12"},
    )


def sweep(folder: Path, **changes: Any) -> Sweep:
    return replace(Sweep("gpt.py:step", [[V5E]], (), [BATCH], compiled, folder), **changes)


def test_each_choice_gets_its_largest_value_with_what_comes_before_it(tmp_path: Path) -> None:
    asked = sweep(tmp_path, varied=[BATCH, Varied("remat", ["none", "full"], searched=False)])
    none, full = asked.run()
    assert (none.value, none.without_recomputation) == (80, 48)
    assert (full.value, full.without_recomputation) == (344, 208)
    assert none.line is not None
    assert none.line.fixed_bytes == pytest.approx(3.6 * GIB, rel=1e-6)
    assert none.line.bytes_per_item == pytest.approx(0.2 * GIB, rel=1e-6)
    assert list(none.line.fixed_roles) == ["parameter"]
    assert choices_of(asked.rows()) == ["remat"]
    text = "\n".join(lines([none, full], ["remat"]))
    assert "none: 3.600 GiB fixed (parameter 3.600 GiB) + 204.8 MiB per item of batch up to 48; above, XLA" in text


def test_the_value_is_the_largest_among_neighbours_and_every_figure_is_compiled(tmp_path: Path) -> None:
    asked = sweep(tmp_path)
    (found,) = asked.run()
    sizes = {dict(one.candidate.knobs)["batch"]: one.fits for one in asked.outcomes}
    assert sizes[80] and not sizes[88]
    records = [read_outcome(path.read_bytes(), path.name) for path in tmp_path.glob("*/fit.json")]
    assert {one.candidate for one in records} == {one.candidate for one in asked.outcomes}
    assert found.largest in records


def test_without_a_size_the_smallest_slice_that_fits_is_the_answer(tmp_path: Path) -> None:
    (found,) = sweep(tmp_path, targets=[slices("v5e")], varied=[], fixed=(("batch", 96),)).run()
    assert found.target == "v5e:2x4"
    assert [one.candidate.target for one in found.smaller] == ["v5e:1x1", "v5e:2x2"]
    assert "the smallest slice on which batch=96 fits is v5e:2x4; v5e:2x2 needs 16.20 GiB" in "\n".join(
        lines([found], [])
    )


def test_a_budget_replaces_the_limit_of_the_chip(tmp_path: Path) -> None:
    (found,) = sweep(tmp_path, budget=8 * GIB).run()
    assert found.value == 16
    (found,) = sweep(tmp_path, budget=GIB).run()
    assert (found.value, found.largest) == (None, None)
    assert "does not fit: it reserves 5.200 GiB of 1.000 GiB, 4.200 GiB too much" in "\n".join(lines([found], []))


def test_an_error_of_one_choice_leaves_the_others(tmp_path: Path) -> None:
    def some_fail(candidate: Candidate) -> Outcome:
        bad = dict(candidate.knobs).get("remat") == "bad"
        return Outcome(candidate, error="KeyError: 'bad'", traceback="File fit.py") if bad else compiled(candidate)

    asked = sweep(tmp_path, varied=[BATCH, Varied("remat", ["bad", "none"], searched=False)], compile=some_fail)
    bad, none = asked.run()
    assert none.value == 80
    assert bad.last.error == "KeyError: 'bad'"
    assert "bad: v5e:2x2 remat=bad, batch=8 could not be compiled: KeyError: 'bad'" in "\n".join(
        lines([bad, none], ["remat"])
    )


def test_a_batch_that_must_be_a_multiple_of_something_is_searched_in_multiples(tmp_path: Path) -> None:
    def split_over_two(candidate: Candidate) -> Outcome:
        odd = int(dict(candidate.knobs)["batch"]) % 2
        return Outcome(candidate, error="IndivisibleError") if odd else compiled(candidate)

    (found,) = sweep(tmp_path, varied=[Varied("batch", range(1, 1025), searched=True)], compile=split_over_two).run()
    assert (found.value, found.without_recomputation) == (86, 52)
    assert [dict(one.candidate.knobs)["batch"] for one in found.failed] == [1]
    assert "a value could not be compiled: batch=1: IndivisibleError" in "\n".join(lines([found], []))


def test_the_end_of_the_range_is_said(tmp_path: Path) -> None:
    (found,) = sweep(tmp_path, varied=[Varied("batch", range(8, 41, 8), searched=True)]).run()
    assert (found.value, found.at_end) == (40, True)
    assert "batch=40 is the last value that was asked for" in "\n".join(lines([found], []))


def test_what_was_compiled_before_a_stop_is_an_answer(tmp_path: Path) -> None:
    begun: list[Candidate] = []

    def stop_after_two(candidate: Candidate) -> Outcome:
        if len(begun) == 2:
            raise CancelledError
        begun.append(candidate)
        return compiled(candidate)

    (found,) = sweep(tmp_path, compile=stop_after_two).run()
    assert found.value == 8


def test_the_json_answer_has_the_keys_of_the_contract(tmp_path: Path) -> None:
    asked = sweep(tmp_path, varied=[BATCH, Varied("remat", ["none"], searched=False)])
    answer = fit_answer(asked.outcomes, asked.run(), Asked(str(tmp_path)))
    figures = {"fits", "reserved_bytes", "peak_bytes", "limit_bytes", "rematerialized", "seconds"}
    assert {"target", "knobs", "run", "error", *figures} <= set(answer["candidates"][0])
    expected = {"target": "v5e:2x2", "knobs": {"remat": "none"}, "vary": "batch", "value": 80}
    assert answer["largest"][0].items() >= {**expected, "value_without_recomputation": 48}.items()


def test_two_ranges_and_a_knob_given_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Two ranges"):
        sweep(tmp_path, varied=[BATCH, Varied("length", range(1, 9), searched=True)])
    with pytest.raises(InputError, match="given twice"):
        sweep(tmp_path, fixed=(("batch", 8),))


@pytest.mark.parametrize(
    ("refused", "text"),
    [
        (
            "Ran out of memory in memory space vmem. Scoped allocation with size 17.00M and limit 16.00M exceeded "
            "scoped vmem limit by 1.00M.",
            "a kernel needs 17.00 MiB of VMEM, and may take 16.00 MiB: Ran out of memory",
        ),
        (
            "Allocation (size=4194304) would exceed memory (size=1048576) :: #allocation2 [shape = 's32[1048576]', "
            "space=smem, size = 0x400000]",
            "a kernel needs 4.000 MiB of SMEM, and may take 1.000 MiB: Allocation",
        ),
        ("The code needs more than is left", "does not fit: The code"),
    ],
)
def test_a_refused_kernel_has_its_need_and_its_limit(refused: str, text: str) -> None:
    outcome = Outcome(Candidate("f.py:step", "v5e:1x1"), reserved_bytes=1 << 20, refused=refused)
    assert text in verdict(outcome)
