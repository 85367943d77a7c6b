"""The step of a script: the function with the most work of those that update a state."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tb_memplugin.fit.script.jits import SMALL, CalledJit
from tb_memplugin.fit.script.on_target import Lowerer, ScriptProgram
from tb_memplugin.fit.script.watching import LARGE, Watcher

# A step has been found once it is called again. Where it is small, or returns nothing that it takes, as an evaluation
# before the first step does, no new function may have been called for so long.
SMALL_SECONDS, EVALUATION_SECONDS = 3.0, 20.0


class ScriptEnded(BaseException):
    """The end of a script whose step is found. No `except Exception` of the script can stop it."""


class ChosenStep:
    """The step among the functions that a script has called, until now."""

    def __init__(self, lowerer: Lowerer, wanted: str = "", assumed: Mapping[str, int] | None = None) -> None:
        self.watcher = Watcher(lowerer, self._hear, assumed or {})
        self.jit: CalledJit | None = None
        self.program: ScriptProgram | None = None
        self.failure: Exception | None = None  # why the step cannot be lowered
        self.beside_bytes = 0  # of one device, in arrays that stay while the step runs and are no arguments of it
        self._wanted = wanted.removeprefix("jit_")  # the name of the step, else it is the one with the most work
        self._types: list[str] = []  # of the step's arguments
        self._known, self._new_at = 0, 0.0

    def _hear(self, jit: CalledJit, arguments: Sequence[Any], parameters: dict[str, Any]) -> None:
        if len(self.watcher.called) > self._known:
            self._known, self._new_at = len(self.watcher.called), time.monotonic()
        quiet = time.monotonic() - self._new_at
        if jit is not self.jit and not (self._is_step(jit) or (quiet > EVALUATION_SECONDS and self._repeats(jit))):
            return
        jaxpr = parameters["jaxpr"]
        self.beside_bytes = self.watcher.bytes_beside([*arguments, *jaxpr.consts])
        types = [*map(str, jaxpr.in_avals)]
        if jit is not self.jit or types != self._types:  # a state may have other shardings after the first step
            self.jit, self._types = jit, types
            self._lower(arguments, parameters)
        is_found = quiet > EVALUATION_SECONDS or (jit.updates and (jit.bytes > LARGE or quiet > SMALL_SECONDS))
        if self._wanted or (jit.calls > 1 and is_found):
            raise ScriptEnded

    def _repeats(self, jit: CalledJit) -> bool:
        """Return whether a function has the most work of those that were called again, and the step was not."""
        repeated = [each for each in self.watcher.called.values() if each.calls > 1 and each.bytes > SMALL]
        return self.jit is not None and self.jit.calls == 1 and jit is max(repeated, key=lambda each: each.rank)

    def _is_step(self, jit: CalledJit) -> bool:
        if self._wanted:
            return jit.name == self._wanted
        return jit.bytes > SMALL and (self.jit is None or jit.rank > self.jit.rank)

    def _lower(self, arguments: Sequence[Any], parameters: dict[str, Any]) -> None:
        self.program, self.failure = None, None
        try:
            self.program = self.watcher.lowerer.program(arguments, parameters)
        except Exception as error:
            self.failure = error

    def others(self) -> list[CalledJit]:
        """Return the other large functions, those with the most work first."""
        found = [jit for jit in self.watcher.called.values() if jit is not self.jit and jit.bytes > LARGE]
        return sorted(found, key=lambda jit: jit.rank, reverse=True)
