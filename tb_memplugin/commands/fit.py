"""The command `fit`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from threading import Event, Lock

from tb_memplugin.commands.support.output import asked
from tb_memplugin.commands.support.stored_fits import is_stored, show_stored
from tb_memplugin.commands.support.terminal import complain, reply
from tb_memplugin.errors import InputError
from tb_memplugin.fit.advice import USUAL_PIECES, try_answers
from tb_memplugin.fit.compile_task import MAIN, Limits, ScriptCall, is_script
from tb_memplugin.fit.compiling import compiler
from tb_memplugin.fit.knobs import parse_fixed, parse_varied
from tb_memplugin.fit.step.step_file import FoundStep, find_step
from tb_memplugin.fit.sweep import Sweep, choices_of
from tb_memplugin.model.fit import LargestValue, Outcome, Tried
from tb_memplugin.questions.asking.text_table import bar_text
from tb_memplugin.questions.fit.answer import fit_answer
from tb_memplugin.questions.fit.tried import tried_lines
from tb_memplugin.questions.fit.words import candidate_text, lines, size_text
from tb_memplugin.sizes import counted

STOPPED = 130  # the exit code of shells after Ctrl+C
COMPILES_OF_A_SEARCH = 12


def run(arguments: argparse.Namespace) -> int:
    if not arguments.module and is_stored(arguments.step):
        return show_stored(arguments)
    with tempfile.TemporaryDirectory(prefix="tb_memplugin_") as temporary:
        logdir = arguments.to or temporary
        with open_sweep(arguments, Path(logdir), arguments.budget) as (sweep, stop):
            found = answer(sweep, quiet=arguments.json)
            tried = try_advice(sweep, found, quiet=arguments.json) if arguments.tries else None
        reply(
            arguments.json,
            lambda: fit_answer(sweep.outcomes, found, asked(arguments, arguments.to or "-"), tried),
            chain(lines(found, choices_of(sweep.rows())), () if tried is None else tried_lines(tried)),
        )
        if not arguments.json:
            complain_of(one.last for one in found)
        if arguments.open and not stop.is_set():
            from tb_memplugin.hosts import standalone

            standalone.serve(logdir, "127.0.0.1", 0, True)
    return status(found, stop)


@contextmanager
def open_sweep(arguments: argparse.Namespace, logdir: Path, budget: int | None) -> Iterator[tuple[Sweep, Event]]:
    """Yield the sweep that a user asks for, and what Ctrl+C sets to stop it. InputError where it makes no sense."""
    step, stop = asked_step(arguments), Event()
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
        yield sweep, stop


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
    """Run a sweep, with its targets and its progress on standard error."""
    if not quiet:
        targets = [row[0] for row in sweep.targets if row]
        sizes = [f", {size_text(target.capacity)} each" if target.capacity else "" for target in targets]
        texts = [f"{one} ({counted(one.devices, 'device')}{size})" for one, size in zip(targets, sizes, strict=True)]
        complain(f"{', '.join(texts)}: no hardware needed")
    with progress(sweep, len(sweep.rows()), quiet):
        return sweep.run()


def try_advice(sweep: Sweep, found: Sequence[LargestValue], quiet: bool) -> list[Tried]:
    """Compile the answers with changes, with progress on standard error."""
    with progress(sweep, USUAL_PIECES * len(found), quiet):
        return try_answers(sweep, found)


@contextmanager
def progress(sweep: Sweep, rows: int, quiet: bool) -> Iterator[None]:
    """Count the compiled candidates on standard error: in a bar where it is a terminal, else with a line for each.

    `rows` is the number of wanted answers, each of which may take a search.
    """
    if quiet:
        yield
        return
    stream, begun, lock = sys.stderr, time.monotonic(), Lock()
    most = 1 if sweep.searched is None else COMPILES_OF_A_SEARCH
    compiled = answered = 0

    def done(outcome: Outcome) -> None:
        nonlocal compiled
        with lock:
            compiled += 1
            if stream.isatty():
                # Each of the other rows is expected to take as many as the answered ones.
                total = max(compiled, compiled * rows // answered if answered else rows * most)
                minutes, seconds = divmod(int(time.monotonic() - begun), 60)
                count = f"{compiled} of about {total}, {minutes}:{seconds:02d}"
                stream.write(f"\r{bar_text(compiled, total)} {count}\x1b[K")
            else:
                result = outcome.error or f"{size_text(outcome.reserved_bytes)} in {outcome.seconds:.1f} s"
                stream.write(f"{candidate_text(outcome)}: {result}\n")
            stream.flush()

    def finished(answer: LargestValue) -> None:
        nonlocal answered
        with lock:
            answered += 1

    sweep.done, sweep.finished = done, finished
    try:
        yield
    finally:
        if stream.isatty():
            stream.write("\r\x1b[K")
            stream.flush()


def complain_of(outcomes: Iterable[Outcome]) -> None:
    """Print the tracebacks of the user's code, each once."""
    for text in dict.fromkeys(one.traceback for one in outcomes if one.traceback):
        complain("", *text.split("\n"))


def status(found: Sequence[LargestValue], stop: Event) -> int:
    """Return the exit code: 2 if something could not be compiled, 1 if something does not fit."""
    if stop.is_set():
        complain("stopped: the answer is that of the finished candidates")
        return STOPPED
    if any(one.last.error for one in found) or not found:
        return 2
    return 0 if all(one.largest is not None for one in found) else 1
