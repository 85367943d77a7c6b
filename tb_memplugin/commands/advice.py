"""The command `advice`."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tb_memplugin.commands.support.output import asked, chosen_recording
from tb_memplugin.commands.support.stored_fits import outcomes_beside
from tb_memplugin.commands.support.terminal import complain, print_answer, show
from tb_memplugin.errors import InputError
from tb_memplugin.model.fit import Outcome, Tried
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.asking.selectors import choose_main_memory, choose_with_allocations
from tb_memplugin.questions.recording.advice import advice, advice_answer, lines


def run(arguments: argparse.Namespace) -> None:
    chosen, _ = chosen_recording(arguments, choose_main_memory if arguments.compile else choose_with_allocations)
    is_made = arguments.compile or arguments.step
    if arguments.to and not is_made:
        raise InputError("Nothing to keep", "--to", "add --compile or --step")
    if (arguments.on or arguments.fixed) and not arguments.step:
        raise InputError("No step", "--on" if arguments.on else "--set", "add --step FILE.py:FUNCTION")
    outcomes, tried = _made_again(arguments, chosen) if is_made else (outcomes_beside(chosen, arguments.path), ())
    again = outcomes[0] if is_made else None
    if arguments.json:
        print_answer(advice_answer(chosen, asked(arguments, arguments.path), outcomes, again))
        complain(*(f"tb-memplugin: {one.title}: {one.error}" for one in tried if one.error))
        return
    show(*(list(lines(advice(chosen, outcomes, again))) or ["No known change would lower this peak."]))
    if again is not None:
        from tb_memplugin.questions.fit.tried import compiled_again_lines

        show("", *compiled_again_lines(chosen, again, tried))


def _made_again(arguments: argparse.Namespace, recording: Recording) -> tuple[Sequence[Outcome], Sequence[Tried]]:
    """Compile a program of a dump again, or trace the step of a snapshot: unchanged, and with each piece of advice."""
    from tb_memplugin.commands.fit import answer, open_sweep, try_advice
    from tb_memplugin.fit.dumped import dumped_step

    if not arguments.step:
        arguments.step, target = dumped_step(recording)
        arguments.on, arguments.fixed = [target], []
    elif not recording.kind.has_tensor_stacks:
        raise InputError("Not a snapshot of PyTorch", recording.id, "for a step of JAX, use `tb-memplugin fit --try`")
    arguments.scheduler, arguments.prove = None, False
    with (
        tempfile.TemporaryDirectory(prefix="tb_memplugin_") as temporary,
        open_sweep(arguments, Path(arguments.to or temporary), None) as (sweep, stop),
    ):
        found = answer(sweep, quiet=arguments.json)
        if found and found[0].last.error:
            raise InputError("It cannot be compiled or traced again", arguments.step, found[0].last.error)
        tried = try_advice(sweep, found, quiet=arguments.json)
    if stop.is_set():
        raise KeyboardInterrupt
    return sweep.outcomes, [one for one in tried if one.is_compiled]
