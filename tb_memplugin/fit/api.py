"""`fit` from Python: the largest value of a knob that fits, and single compilations.

from tb_memplugin import fit

fit.largest(step, on="v5e:4x4", vary={"batch": (1, 1024), "remat": ["none", "full"]})
fit.compile(step, on="v5e:4x4", batch=48)
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tb_memplugin.errors import InputError

if TYPE_CHECKING:
    from tb_memplugin.fit.compiling.compiler import Compiler
    from tb_memplugin.fit.knobs import Varied
    from tb_memplugin.fit.step.step_file import FoundStep
    from tb_memplugin.model.fit import Knob, LargestValue, Outcome

    Step = str | Callable[..., Any]
    Values = Sequence[Knob] | range | tuple[int, ...] | None

IN_CHILD = "TB_MEMPLUGIN_FIT_CHILD"  # an environment variable of processes that compile
TIMEOUT_SECONDS = 600.0


def largest(
    step: Step,
    on: str | Sequence[str],
    vary: str | Mapping[str, Values] = (),  # type: ignore[assignment]
    set: Mapping[str, Knob] | None = None,
    budget: str | int | None = None,
    to: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    scheduler: str | None = None,
    timeout: float = TIMEOUT_SECONDS,
    memory: str | int | None = None,
    cache: bool = True,
) -> list[LargestValue]:
    """Return the largest value of a knob that fits, for each target and each combination of the other knobs.

    `step` is a function of `devices` and knobs, or its name as in "fit_gpt.py:step". In `vary`, a tuple (low, high) or
    (low, high, step), a range or None is searched for the largest value that fits, and each value of a list is tried.
    """
    from tb_memplugin.fit.sweep import Sweep
    from tb_memplugin.targets import parse_target, slices

    texts = [on] if isinstance(on, str) else list(on)
    targets = [[one] if (one := parse_target(text)) else slices(text.strip().lower()) for text in texts]
    asked: Mapping[str, Values] = {vary: None} if isinstance(vary, str) else dict(vary)
    with _open_compiler(step, to, jobs, scheduler, timeout, memory, cache) as (compiler, found):
        varied = [_varied(name, values, found.defaults.get(name)) for name, values in asked.items()]
        fixed = tuple((set or {}).items())
        sweep = Sweep(found.text, targets, fixed, varied, compiler, compiler.logdir, _bytes(budget))
        answer = sweep.run()
    if compiler.stopped_by_signal:
        raise KeyboardInterrupt
    return answer


def compile(
    step: Step,
    on: str,
    *,
    budget: str | int | None = None,
    to: str | os.PathLike[str] | None = None,
    timeout: float = TIMEOUT_SECONDS,
    memory: str | int | None = None,
    cache: bool = True,
    **knobs: Knob,
) -> Outcome:
    """Return what compiling a step for a target with these knobs gives."""
    found = largest(step, on, set=knobs, budget=budget, to=to, jobs=1, timeout=timeout, memory=memory, cache=cache)
    return found[0].last


@contextmanager
def _open_compiler(
    step: Step,
    to: str | os.PathLike[str] | None,
    jobs: int | None,
    scheduler: str | None,
    timeout: float,
    memory: str | int | None,
    cache: bool,
) -> Iterator[tuple[Compiler, FoundStep]]:
    """Yield a compiler for a step, and how other processes find the step."""
    from tb_memplugin.fit.compile_task import Limits
    from tb_memplugin.fit.compiling.compiler import open_compiler
    from tb_memplugin.fit.step.step_file import find_step

    found = find_step(step)
    if os.environ.get(IN_CHILD):
        text = 'put the call below `if __name__ == "__main__":`'
        raise InputError("fit is called while the step's file is imported", found.text, text)
    limits = Limits(timeout, _bytes(memory))
    with (
        tempfile.TemporaryDirectory(prefix="tb_memplugin_") as temporary,
        open_compiler(
            Path(to or temporary), found.text, limits, jobs, scheduler, cache, pickled=found.pickled
        ) as compiler,
    ):
        yield compiler, found


def _varied(name: str, values: Values, default: object) -> Varied:
    from tb_memplugin.fit.knobs import Varied, parse_varied

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
    from tb_memplugin.sizes import parse_size

    return parse_size(size) if isinstance(size, str) else size
