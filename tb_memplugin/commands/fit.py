"""The command `fit`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from tb_memplugin.commands.output import asked
from tb_memplugin.commands.stored_fits import is_stored, show_stored
from tb_memplugin.commands.terminal import complain, print_answer
from tb_memplugin.commands.terminal import show as print_text
from tb_memplugin.errors import InputError
from tb_memplugin.fit.advice import USUAL_PIECES, try_answers
from tb_memplugin.fit.compile_task import MAIN, Limits, ScriptCall, is_script
from tb_memplugin.fit.compiling import compiler
from tb_memplugin.fit.knobs import parse_fixed, parse_varied
from tb_memplugin.fit.step.step_file import FoundStep, find_step
from tb_memplugin.fit.sweep import Sweep, choices_of
from tb_memplugin.model.fit import LargestValue, Tried
from tb_memplugin.questions.asking.asked import Asked
from tb_memplugin.questions.fit.answer import fit_answer
from tb_memplugin.questions.fit.progress import FitProgress, announcement
from tb_memplugin.questions.fit.tried import tried_lines
from tb_memplugin.questions.fit.words import lines

STOPPED = 130  # the exit code of shells after Ctrl+C


def run(arguments: argparse.Namespace) -> int:
    if not arguments.module and is_stored(arguments.step):
        return show_stored(arguments)
    stop = Event()
    with tempfile.TemporaryDirectory(prefix="tb_memplugin_") as temporary:
        logdir = arguments.to or temporary
        with open_sweep(arguments, Path(logdir), arguments.budget, stop) as sweep:
            found = answer(sweep, quiet=arguments.json)
            tried = try_advice(sweep, found, quiet=arguments.json) if arguments.tries else None
        show(sweep, found, asked(arguments, arguments.to or "-") if arguments.json else None, tried)
        if arguments.open and not stop.is_set():
            from tb_memplugin.hosts import standalone

            standalone.serve(logdir, "127.0.0.1", 0, True)
    return status(found, stop)


@contextmanager
def open_sweep(arguments: argparse.Namespace, logdir: Path, budget: int | None, stop: Event) -> Iterator[Sweep]:
    """Yield the sweep that a user asks for, which Ctrl+C stops. InputError where it makes no sense."""
    step = asked_step(arguments)
    vary = getattr(arguments, "vary", [])  # `check` has neither this option nor --prove
    varied = [parse_varied(text, step.defaults.get(text.partition("=")[0])) for text in vary]
    fixed = tuple(map(parse_fixed, arguments.fixed))
    options = compiler.CompileOptions(
        Limits(arguments.timeout, arguments.memory), arguments.jobs, arguments.scheduler, not arguments.no_cache
    )
    proves = getattr(arguments, "prove", None)
    with (
        compiler.open_sweep(step, arguments.on, varied, fixed, logdir, stop, options, budget, proves) as sweep,
        compiler.set_by_signals(stop),
    ):
        yield sweep


def asked_step(arguments: argparse.Namespace) -> FoundStep:
    """Return the step that a user names: a function, a program of a dump, or a script with its command line."""
    module = getattr(arguments, "module", False)
    line, jit = arguments.command_line, getattr(arguments, "jit", "")
    fakes, assumed = getattr(arguments, "fakes", []), getattr(arguments, "assumed", [])
    if not module and not is_script(arguments.step):
        if line or jit or fakes or assumed:
            raise InputError(
                "Not a script", arguments.step, "write FILE.py or -m MODULE before `--`, or --set KNOB=VALUE"
            )
        return find_step(arguments.step)
    call = ScriptCall(tuple(line or ()), jit or "", tuple(fakes), tuple(assumed))
    return FoundStep(f"{arguments.step}:{MAIN}", script=call)


def answer(sweep: Sweep, quiet: bool) -> list[LargestValue]:
    """Run a sweep, with its progress on standard error."""
    if not quiet:
        targets = [(str(t), t.devices, t.capacity) for row in sweep.targets for t in row[:1]]
        complain(announcement(targets))
    with progress(sweep, len(sweep.rows()), quiet):
        return sweep.run()


def try_advice(sweep: Sweep, found: Sequence[LargestValue], quiet: bool) -> list[Tried]:
    """Compile the answers with changes, with progress on standard error."""
    with progress(sweep, USUAL_PIECES * len(found), quiet):
        return try_answers(sweep, found)


@contextmanager
def progress(sweep: Sweep, rows: int, quiet: bool) -> Iterator[None]:
    """Show the progress of a sweep until it has this number of answers."""
    if quiet:
        yield
        return
    progress = FitProgress(sys.stderr, rows, sweep.searched is not None)
    sweep.done, sweep.finished = progress.done, progress.finished
    try:
        yield
    finally:
        progress.close()


def show(
    sweep: Sweep, found: Sequence[LargestValue], question: Asked | None, tried: Sequence[Tried] | None = None
) -> None:
    """Print the answer, as JSON where a program asked, and tracebacks of the user's code on standard error."""
    if question is not None:
        print_answer(fit_answer(sweep.outcomes, found, question, tried))
        return
    of_advice = [] if tried is None else tried_lines(tried)
    print_text(*lines(found, choices_of(sweep.rows())), *of_advice)
    for text in dict.fromkeys(one.last.traceback for one in found if one.last.traceback):
        complain("", *text.split("\n"))


def status(found: Sequence[LargestValue], stop: Event) -> int:
    """Return the exit code: 2 if something could not be compiled, 1 if something does not fit."""
    if stop.is_set():
        complain("stopped: the answer is that of the finished candidates")
        return STOPPED
    if any(one.last.error for one in found) or not found:
        return 2
    return 0 if all(one.largest is not None for one in found) else 1
