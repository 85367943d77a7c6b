"""A compiled candidate replaces the simulated saving of a change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.fits import candidate
from support.recordings import Row, recording

from tb_memplugin.analysis.advice import Advice, AdviceKind
from tb_memplugin.analysis.advice.compiled import compiled_savings, with_compiled
from tb_memplugin.analysis.advice.fitting import fitting_set
from tb_memplugin.analysis.advice.model import saving
from tb_memplugin.analysis.replay.what_if import remove_rows
from tb_memplugin.model.fit import Outcome
from tb_memplugin.model.recording import Recording

MIB = 2**20
SIZES = (50, 40, 30)
DONATE, SHARD = "donate:state", "shard:data:state"
BASE = replace(candidate(batch=8), run="base", reserved_bytes=120 * MIB)


def program(limit: int | None = None) -> Recording:
    made = recording([Row(size * MIB, 0, 4) for size in SIZES], 4)
    return replace(made, source="/logdir/base/step.hlo.pb", capacity=None if limit is None else limit * MIB)


def pieces_of(made: Recording) -> list[Advice]:
    """Return a change that is simulated only, and two that can be compiled."""
    found = []
    kinds = ((AdviceKind.DTYPE, ()), (AdviceKind.REPLICATION, (SHARD,)), (AdviceKind.DONATION, (DONATE,)))
    for number, (kind, edits) in enumerate(kinds):
        rows = np.array([number])
        saved = saving(made, remove_rows(made, rows))
        assert saved is not None
        found.append(Advice(kind, str(kind), f"It {saved.effect}.", "", rows, SIZES[number] * MIB, saved, edits))
    return found


def changed(mib: int, *changes: str, batch: int = 8) -> Outcome:
    return replace(candidate(changes=changes, batch=batch), reserved_bytes=mib * MIB, run="-".join(changes))


def shown(*outcomes: Outcome, limit: int | None = None) -> list[tuple[str, int, bool]]:
    """Return the kind of each piece, its saving in MiB, and whether it was compiled."""
    made = program(limit)
    found = with_compiled(made, pieces_of(made), compiled_savings(made, outcomes))
    return [(str(one.kind), one.saving_bytes // MIB, one.saving.is_shown) for one in found]


SIMULATED = [("donation", 30, False), ("dtype", 50, False), ("replication", 40, False)]  # donation costs no time


def test_without_a_record_of_the_program_everything_is_simulated() -> None:
    assert shown() == shown(changed(60, DONATE)) == SIMULATED
    assert shown(replace(BASE, run="other"), changed(60, DONATE)) == SIMULATED
    assert shown(replace(BASE, reserved_bytes=1), changed(60, DONATE)) == SIMULATED  # a file that was written since


def test_what_was_compiled_replaces_the_estimate_and_the_order_follows() -> None:
    found = shown(BASE, changed(60, DONATE))
    assert found == [("donation", 60, True), ("dtype", 50, False), ("replication", 40, False)]


def test_a_change_that_is_refuted_is_gone() -> None:
    assert shown(BASE, changed(150, SHARD)) == SIMULATED[:2]


def test_other_candidates_say_nothing_about_it() -> None:
    failed = replace(changed(60, DONATE), reserved_bytes=None, error="ValueError: no")
    refused = replace(changed(60, DONATE), refused="its code needs more")
    assert shown(BASE, changed(60, DONATE, batch=16), failed, refused) == SIMULATED


def test_a_changed_program_is_compared_with_further_changes_of_it() -> None:
    own = replace(changed(120, SHARD), run="base")
    assert ("donation", 20, True) in shown(own, changed(100, SHARD, DONATE), changed(60, DONATE))


def test_a_knob_that_splits_the_batch_is_the_advice_to_split_it() -> None:
    made = program()
    rows = np.array([0])
    saved = saving(made, remove_rows(made, rows))
    assert saved is not None
    piece = Advice(AdviceKind.MICROBATCHING, "Use two", f"It {saved.effect}.", "", rows, 0, saved)
    savings = compiled_savings(made, [BASE, changed(110, "set:microbatches=2"), changed(50, "set:layers=1")])
    (found,) = with_compiled(made, [piece], savings)
    assert (found.saving_bytes, found.saving.is_shown) == (10 * MIB, True)
    assert found.sentence == "It lowers what the program reserves, as compiled, by 10.0 MiB."


def test_changes_that_were_compiled_together_are_the_set_with_what_the_compiler_says() -> None:
    made = program(60)
    both = [BASE, changed(90, SHARD), changed(95, DONATE), changed(58, SHARD, DONATE)]
    savings = compiled_savings(made, both)
    pieces = with_compiled(made, [one for one in pieces_of(made) if one.edits], savings)
    found = fitting_set(made, pieces, savings)
    assert found is not None
    assert (found.pieces, found.after_bytes, found.fits, found.evidence) == ((0, 1), 58 * MIB, True, "compiled")
    refuted = compiled_savings(made, [*both[:3], changed(61, SHARD, DONATE)])
    assert fitting_set(made, pieces, refuted) == found._replace(after_bytes=61 * MIB, fits=False)


def test_a_program_of_a_dump_is_the_one_that_was_compiled_again_from_it() -> None:
    made = replace(program(), source="/logs/dump/module_0001.jit_f.sm_9.0a_gpu_after_optimizations.hlo.pb")
    step = "/moved/dump/module_0001.jit_f.before_optimizations.hlo.pb:jit_f"
    base, donated = (replace(one, candidate=replace(one.candidate, step=step)) for one in (BASE, changed(60, DONATE)))
    assert [saved.at_least for saved in compiled_savings(made, [donated, base]).values()] == [60 * MIB]
    near, far = (replace(base, reserved_bytes=int(share * 120 * MIB)) for share in (0.99, 0.9))
    assert compiled_savings(made, [near, donated]) and not compiled_savings(made, [far, donated])
    for other in ("module_0002.jit_f", "module_0001.jit_fg"):
        elsewhere = replace(made, source=f"/logs/dump/{other}.sm_9.0a_gpu_after_optimizations.hlo.pb")
        assert not compiled_savings(elsewhere, [base, donated])
    assert not compiled_savings(replace(made, source=made.source.replace("dump", "other")), [base, donated])
