"""Compile a step for accelerators that are not here: does it fit, and what is the largest batch?

FILE.py:FUNCTION is a function of `devices` and knobs. It returns a jitted function and the shapes of its arguments:

  def step(devices, batch=8, remat="none"):
      ...
      return jax.jit(train_step, donate_argnums=0), (state_shapes, batch_shapes)

Every figure is that of a compiled program. Exit code 0 means that all that was asked for fits, 1 that something does
not, 2 that something could not be compiled.

Of a logdir, nothing is compiled: the answer is that of its candidates, which --to wrote. Without such candidates, or
with --recording, what a recording needs is compared with the memory of chips.

examples:
  tb-memplugin fit fit_gpt.py:step --on v5e:4x4 --vary batch --vary remat=none,full --to /tmp/xprof
  tb-memplugin fit fit_gpt.py:step --on v5e --set batch=512
  tb-memplugin fit /tmp/xprof --recording jit_train_step --on v5p
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event

# What compiles, reads a logdir or answers in JSON is imported where it is used: `check` imports this file, and would
# start 60 ms later.
from tb_memplugin.commands.output import asked, json_options, print_answer
from tb_memplugin.commands.terminal import printable
from tb_memplugin.commands.terminal import show as print_text
from tb_memplugin.fit.compile_task import TIMEOUT_SECONDS, Limits
from tb_memplugin.fit.knobs import parse_fixed, parse_varied
from tb_memplugin.fit.step.step_file import find_step
from tb_memplugin.fit.sweep import Sweep, choices_of
from tb_memplugin.model.fit import LargestValue, Tried
from tb_memplugin.questions.asking.asked import Asked
from tb_memplugin.questions.fit.progress import FitProgress, announcement
from tb_memplugin.questions.fit.tried import tried_lines
from tb_memplugin.questions.fit.words import lines
from tb_memplugin.sizes import parse_size

STOPPED = 130  # the exit code of shells after Ctrl+C


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "step", metavar="FILE.py:FUNCTION", help="or a logdir or file, to answer from its candidates or recordings"
    )
    question_options(parser)
    parser.add_argument(
        "--vary",
        metavar="KNOB[=VALUES]",
        action="append",
        default=[],
        help="search the largest value of a range that fits (batch, batch=8:512:8), or try each of a list "
        "(remat=none,full)",
    )
    parser.add_argument("--budget", metavar="SIZE", type=parse_size, help="such as 14GiB, in place of the chip's limit")
    parser.add_argument(
        "--prove",
        action=argparse.BooleanOptionalAction,
        help="compile each answer to the end, a minute or more, as its code and its kernels need memory as well; "
        "or none (default: those that may be refused for that)",
    )
    parser.add_argument("--to", metavar="LOGDIR", help="keep each candidate there, as a run")
    parser.add_argument(
        "--try",
        action="store_true",
        dest="tries",
        help="compile the answers with each piece of advice that needs no change of your code: donation, sharding, "
        "compiler options, a knob such as microbatches, accumulation_steps or grad_accum; estimate the others",
    )
    parser.add_argument("--open", action="store_true", help="show the candidates in a browser at the end")
    parser.add_argument(
        "--recording", metavar="ID", help="of a logdir: the chips that have room for a recording, by its id or a part"
    )
    json_options(parser)


def question_options(parser: argparse._ActionsContainer) -> None:
    """Add the options that `fit` and `check` have in common."""
    parser.add_argument(
        "--on",
        metavar="TARGET",
        action="append",
        default=[],
        help="v5e:4x4, h100:8, cpu:8; a chip without a size, such as v5e, tries slices from the smallest up",
    )
    parser.add_argument(
        "--set",
        metavar="KNOB=VALUE",
        action="append",
        default=[],
        dest="fixed",
        help="a value for a knob of the function",
    )
    parser.add_argument("--jobs", type=int, help="compiles at a time (default: half of the cores)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="compile on a dask cluster, such as tcp://host:8786")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=TIMEOUT_SECONDS,
        help=f"for each compile (default: {TIMEOUT_SECONDS:g})",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        type=parse_size,
        help="resident memory that a compile may take on this machine (default: an equal share for each job)",
    )
    parser.add_argument("--no-cache", action="store_true", help="compile again what is in the cache")


def run(arguments: argparse.Namespace) -> int:
    from tb_memplugin.commands.stored_fits import is_stored, show_stored

    if is_stored(arguments.step):
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
    from tb_memplugin.fit.compiling import compiler

    step = find_step(arguments.step)
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


def answer(sweep: Sweep, quiet: bool) -> list[LargestValue]:
    """Run a sweep, with its progress on standard error."""
    if quiet:
        return sweep.run()
    progress = FitProgress(sys.stderr, len(sweep.rows()), sweep.searched is not None)
    print(announcement([(str(t), t.devices, t.capacity) for row in sweep.targets for t in row[:1]]), file=sys.stderr)
    sweep.done, sweep.finished = progress.done, progress.finished
    try:
        return sweep.run()
    finally:
        progress.close()


def try_advice(sweep: Sweep, found: Sequence[LargestValue], quiet: bool) -> list[Tried]:
    """Compile the answers with changes, with progress on standard error."""
    from tb_memplugin.fit.advice import USUAL_PIECES, try_answers

    if quiet:
        return try_answers(sweep, found)
    progress = FitProgress(sys.stderr, USUAL_PIECES * len(found), sweep.searched is not None)
    sweep.done = progress.done
    try:
        return try_answers(sweep, found)
    finally:
        progress.close()


def show(
    sweep: Sweep, found: Sequence[LargestValue], question: Asked | None, tried: Sequence[Tried] | None = None
) -> None:
    """Print the answer, as JSON where a program asked, and tracebacks of the user's code on standard error."""
    if question is not None:
        from tb_memplugin.questions.fit.answer import fit_answer

        print_answer(fit_answer(sweep.outcomes, found, question, tried))
        return
    of_advice = [] if tried is None else tried_lines(tried)
    print_text("\n".join(map(printable, [*lines(found, choices_of(sweep.rows())), *of_advice])))
    for text in dict.fromkeys(one.last.traceback for one in found if one.last.traceback):
        print(f"\n{text}", file=sys.stderr)


def status(found: Sequence[LargestValue], stop: Event) -> int:
    """Return the exit code: 2 if something could not be compiled, 1 if something does not fit."""
    if stop.is_set():
        print("stopped: the answer is that of the finished candidates", file=sys.stderr)
        return STOPPED
    if any(one.last.error for one in found) or not found:
        return 2
    return 0 if all(one.largest is not None for one in found) else 1
