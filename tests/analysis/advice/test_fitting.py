"""The smallest set of changes with which a program fits."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from programs.stored import stored_programs
from support.recordings import Row, recording
from support.servers import DEMO

from tb_memplugin.analysis.advice import Advice, AdviceKind, advise
from tb_memplugin.analysis.advice import fitting as fitting_module
from tb_memplugin.analysis.advice.fitting import fitting_set, saving_together
from tb_memplugin.analysis.advice.model import in_order, saving
from tb_memplugin.analysis.replay.what_if import remove_rows
from tb_memplugin.analysis.usage.headroom import fits_after, headroom
from tb_memplugin.analysis.usage.live_bytes import peak, reserved_bytes
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.recording import Recording

MIB = 2**20
SIZES = (50, 40, 30, 20, 10)
KINDS = (AdviceKind.OFFLOAD, AdviceKind.DTYPE, AdviceKind.SCHEDULE, AdviceKind.MICROBATCHING, AdviceKind.DONATION)


def program(limit: int | None) -> Recording:
    """A program of 150 MiB, in arrays of SIZES."""
    made = recording([Row(size * MIB, 0, 4) for size in SIZES], 4)
    return replace(made, capacity=None if limit is None else limit * MIB)


def pieces_of(made: Recording) -> list[Advice]:
    """Return a change of each of KINDS, which removes the array of its number."""
    found = []
    for number, kind in enumerate(KINDS):
        rows = np.array([number])
        saved = saving(made, remove_rows(made, rows))
        assert saved is not None
        found.append(Advice(kind, str(number), "", "", rows, SIZES[number] * MIB, saved))
    return in_order(found)


def found_for(limit: int | None) -> tuple[list[int], int, bool] | None:
    """Return the sizes of the changes, what is needed with them, and whether that fits; in MiB."""
    made = program(limit)
    pieces = pieces_of(made)
    found = fitting_set(made, pieces)
    if found is None:
        return None
    sizes = [pieces[number].bytes // MIB for number in found.pieces]
    return sorted(sizes, reverse=True), found.after_bytes // MIB, found.fits


def test_where_it_fits_or_the_limit_is_unknown_there_is_no_set() -> None:
    assert found_for(None) is None
    assert found_for(150) is None


def test_one_change_that_is_enough_comes_before_several() -> None:
    assert found_for(100) == ([50], 100, True)


def test_of_several_that_are_enough_the_cheapest_is_taken() -> None:
    assert found_for(140) == ([10], 140, True)  # donation costs nothing
    assert found_for(130) == ([30], 120, True)  # an option of the compiler is less work than microbatches


def test_several_changes_are_made_where_one_is_not_enough() -> None:
    assert found_for(90) == ([40, 30], 80, True)
    assert found_for(30) == ([50, 40, 30], 30, True)


def test_where_no_set_is_enough_it_is_the_one_that_saves_most() -> None:
    made = program(5)
    pieces = [piece for piece in pieces_of(made) if piece.bytes >= 30 * MIB]
    found = fitting_set(made, pieces)
    assert found is not None
    assert (found.pieces, found.after_bytes, found.fits) == ((0, 1, 2), 30 * MIB, False)


def test_the_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting_module, "MAX_REPLAYS", 8)
    calls = []
    together = saving_together

    def counted(*given: object) -> object:
        calls.append(given)
        return together(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(fitting_module, "saving_together", counted)
    assert found_for(1) is not None
    assert len(calls) <= 8 * len(SIZES)


def demo(run: str) -> Recording:
    return next(r for r in listing_of_path(str(DEMO / run)).recordings if r.is_main_memory and r.program).load()


def test_microbatches_are_as_many_as_the_program_needs_and_what_is_promised_holds() -> None:
    """The mended step has four microbatches and donates its state: the compiler says what both give."""
    refused, mended = demo("v5e_out_of_memory"), demo("v5e_mended")
    pieces = advise(refused)
    found = fitting_set(refused, pieces)
    assert found is not None and found.fits
    assert [pieces[number].title for number in found.pieces] == ["Use four microbatches of 64"]
    assert "reshape(4, -1" in pieces[0].change and "a / 4" in pieces[0].change
    assert found.after_bytes <= (headroom(refused).capacity or 0)
    donated = next(number for number, one in enumerate(pieces) if one.kind is AdviceKind.DONATION)
    together = saving_together(refused, pieces, (0, donated))
    after = peak(refused).bytes - together.at_least
    assert peak(mended).bytes <= after <= 1.05 * peak(mended).bytes
    assert reserved_bytes(mended) <= (headroom(mended).capacity or 0)


SMALL = [stored for stored in stored_programs() if stored.name in ("mlp_adam", "lm_mixed", "unet", "resnet")]


@pytest.mark.parametrize("stored", SMALL, ids=str)
def test_a_set_of_real_changes_saves_no_more_than_their_sum_and_less_than_all(stored: object) -> None:
    main = next(r for r in stored.recordings if r.program is not None and r.is_main_memory)  # type: ignore[attr-defined]
    pieces = [one for one in advise(main) if one.saving.replay is not None]
    kept = np.setdiff1d(np.arange(len(main.allocations)), np.concatenate([one.saving.replay.memory for one in pieces]))  # type: ignore[union-attr]
    unavoidable = int(main.allocations.charge[kept].max(initial=0))
    for size in (1, 2, 3):
        for numbers in combinations(range(len(pieces)), size):
            found = saving_together(main, pieces, numbers)
            assert found.room <= sum(pieces[number].saving.room for number in numbers)
            assert peak(main).bytes - found.room >= unavoidable


@pytest.mark.parametrize("stored", SMALL, ids=str)
def test_the_set_of_a_real_program_saves_more_than_any_change_in_it(stored: object) -> None:
    main = next(r for r in stored.recordings if r.program is not None and r.is_main_memory)  # type: ignore[attr-defined]
    for share in (0.95, 0.8, 0.6, 0.3):
        tight = replace(main, capacity=int(share * reserved_bytes(main)))
        pieces = advise(tight)
        found = fitting_set(tight, pieces)
        if found is None:
            continue
        saved = saving_together(tight, pieces, found.pieces)
        assert saved.room >= max(pieces[number].saving.room for number in found.pieces)
        assert found.fits is fits_after(tight, saved.room)
        alone = any(fits_after(tight, one.saving.room) for one in pieces if one.saving.of == "peak")
        assert (len(found.pieces) == 1) >= alone
