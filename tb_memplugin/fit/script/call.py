"""A script with its command line, as `train.py:__main__` or `MODULE:__main__`."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tb_memplugin.errors import InputError
from tb_memplugin.fit.knobs import Varied
from tb_memplugin.model.fit import Knobs

MAIN = "__main__"


@dataclass(frozen=True)
class ScriptCall:
    """The command line of a script, with `{batch}` in the place of a knob, and the function that is its step."""

    arguments: tuple[str, ...] = ()
    jit: str = ""  # empty for the function with the most work
    fakes: tuple[str, ...] = ()  # functions that return ones, with their types
    assumed: tuple[str, ...] = ()  # jitted functions, with the whole numbers that they return

    def filled(self, knobs: Iterable[tuple[str, object]]) -> "ScriptCall":
        """Return the call with the values of the knobs in their places."""
        found = self
        for name, value in knobs:
            place, text = f"{{{name}}}", str(value)
            found = replace(
                found,
                arguments=tuple(each.replace(place, text) for each in found.arguments),
                fakes=tuple(each.replace(place, text) for each in found.fakes),
                assumed=tuple(each.replace(place, text) for each in found.assumed),
            )
        return found

    def numbers(self) -> dict[str, int]:
        """Return the assumed numbers by the names of functions. InputError for one that is none."""
        found = {}
        for text in self.assumed:
            name, _, number = text.partition("=")
            if not name or not number.strip().isdecimal():
                raise InputError("No whole number of a function", text, "write --assume FUNCTION=NUMBER")
            found[name.removeprefix("jit_")] = int(number)
        return found

    def require_places(self, varied: Sequence[Varied], fixed: Knobs) -> None:
        """Raise an InputError for a knob that the command line has no place for."""
        for name in (*(one.name for one in varied), *(name for name, _ in fixed)):
            if not any(f"{{{name}}}" in each for each in (*self.arguments, *self.fakes, *self.assumed)):
                text = f"write {{{name}}} in its command line, as in: -- --{name}={{{name}}}"
                raise InputError("The script has no place for a knob", name, text)


def is_script(step: str) -> bool:
    """Return whether a step is a file without a function."""
    return step.endswith(".py") and os.path.isfile(step)
