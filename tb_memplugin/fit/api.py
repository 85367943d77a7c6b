"""`fit` from Python: the largest value of a knob that fits, and single compilations.

from tb_memplugin import fit

fit.largest(step, on="v5e:4x4", vary={"batch": (1, 1024), "remat": ["none", "full"]})
fit.compile(step, on="v5e:4x4", batch=48)
"""

import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.compile_task import Limits
from tb_memplugin.fit.knobs import Varied, parse_varied
from tb_memplugin.fit.step.step_file import find_step
from tb_memplugin.model.fit import Knob, LargestValue, Outcome
from tb_memplugin.model.kinds import COMPILE_SECONDS
from tb_memplugin.sizes import parse_size

StepOrName = str | Callable[..., Any]
TriedValues = Sequence[Knob] | range | tuple[int, ...] | None


class LargestValues(list[LargestValue]):
    """The answer for each target and choice, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        from tb_memplugin.questions.asking.html import document
        from tb_memplugin.questions.fit.words import html

        return document([html(self)])


def largest(
    step: StepOrName,
    on: str | Sequence[str],
    vary: str | Mapping[str, TriedValues] = (),  # type: ignore[assignment]
    set: Mapping[str, Knob] | None = None,
    budget: str | int | None = None,
    to: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    timeout: float = COMPILE_SECONDS,
    memory: str | int | None = None,
    cache: bool = True,
) -> LargestValues:
    """Return the largest value of a knob that fits, for each target and each combination of the other knobs.

    `step` is a function of `devices` and knobs, or its name as in "fit_gpt.py:step". In `vary`, a tuple (low, high) or
    (low, high, step), a range or None is searched for the largest value that fits, and each value of a list is tried.
    """
    # Imported here, so that importing `fit` loads neither numpy nor protobuf.
    from tb_memplugin.fit.compiling.compiler import CompileOptions, open_sweep, set_by_signals

    found, stop = find_step(step), threading.Event()
    asked: Mapping[str, TriedValues] = {vary: None} if isinstance(vary, str) else dict(vary)
    varied = [_varied(name, values, found.defaults.get(name)) for name, values in asked.items()]
    targets, fixed = [on] if isinstance(on, str) else on, tuple((set or {}).items())
    options = CompileOptions(Limits(timeout, _bytes(memory)), jobs, scheduler, cache)
    with (
        tempfile.TemporaryDirectory(prefix="tb_memplugin_") as temporary,
        open_sweep(found, targets, varied, fixed, Path(to or temporary), stop, options, _bytes(budget)) as sweep,
        set_by_signals(stop),
    ):
        answer = sweep.run()
    if stop.is_set():
        raise KeyboardInterrupt
    return LargestValues(answer)


def compile(
    step: StepOrName,
    on: str,
    *,
    budget: str | int | None = None,
    to: str | os.PathLike[str] | None = None,
    timeout: float = COMPILE_SECONDS,
    memory: str | int | None = None,
    cache: bool = True,
    **knobs: Knob,
) -> Outcome:
    """Compile a step for a target with these knobs; return the outcome."""
    found = largest(step, on, set=knobs, budget=budget, to=to, jobs=1, timeout=timeout, memory=memory, cache=cache)
    return found[0].last


def _varied(name: str, values: TriedValues, default: object) -> Varied:
    if values is None:
        return parse_varied(name, default)
    if isinstance(values, range) and values and values.step > 0:
        return Varied(name, values, searched=True)
    if isinstance(values, tuple) and len(values) in (2, 3) and all(type(value) is int for value in values):
        return parse_varied(f"{name}={':'.join(map(str, values))}", default)
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        text = "write (low, high) to search the largest value that fits, or [a, b] to try each"
        raise InputError("Not values of a knob", f"{name}={values!r}", text)
    return Varied(name, list(values), searched=False)


def _bytes(size: str | int | None) -> int | None:
    return parse_size(size) if isinstance(size, str) else size
