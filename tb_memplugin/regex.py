"""Regular expressions of users and links, in RE2's syntax, which pprof and Go use: a search takes linear time."""

from __future__ import annotations

import re
import time

from tb_memplugin.errors import InputError

MAX_LENGTH = 500  # characters of an expression
MAX_PROGRAM = 5_000  # instructions; a search takes at most as many steps per character
MAX_SEARCHED = 10_000  # characters of a text; names of functions are shorter
MAX_SECONDS = 5.0  # for all searches with one expression
MAX_BYTES = 1 << 20  # that the engine takes for its states


class Regex:
    """A compiled expression, for one question: InputError once its searches have taken MAX_SECONDS."""

    def __init__(self, pattern: str, name: str) -> None:
        """Compile an expression from the parameter `name`. InputError where it is invalid, or too large."""
        import re2

        self.pattern = pattern
        self._where = f"{name}={pattern[:80]}"
        self._seconds = 0.0
        options = re2.Options()
        options.log_errors = False
        options.max_mem = MAX_BYTES
        if len(pattern) > MAX_LENGTH:
            raise self._error(f"it is longer than {MAX_LENGTH} characters")
        try:
            self._compiled = re2.compile(pattern, options)
        except (re2.error, UnicodeError) as error:
            said = error.args[0] if error.args else ""
            reason = said.decode("utf-8", "replace") if isinstance(said, bytes) else error
            raise self._error(f"{reason}; the syntax is RE2's, without lookaheads and references") from error
        if self._compiled.programsize > MAX_PROGRAM:
            raise self._too_slow("it is too large")

    def search(self, text: str) -> bool:
        """Return whether the beginning of the text, MAX_SEARCHED characters, contains a match."""
        began = time.perf_counter()
        # A file's name may have bytes that are not UTF-8, which RE2 does not search.
        found = self._compiled.search(text[:MAX_SEARCHED].encode("utf-8", "replace").decode()) is not None
        self._seconds += time.perf_counter() - began
        if self._seconds > MAX_SECONDS:
            raise self._too_slow(f"it took more than {MAX_SECONDS:.0f} seconds")
        return found

    def _error(self, remedy: str) -> InputError:
        return InputError("Not a regular expression", self._where, remedy)

    def _too_slow(self, reason: str) -> InputError:
        return InputError("Regular expression is too slow", self._where, f"{reason}; repeat less in it")


NUMBERED = re.compile(r"(?<!\\)\((\d+)\)")


def recording_regex(pattern: str, name: str) -> Regex:
    """Compile an expression for ids of recordings, in which `jit_step(10)`, as `summary` prints it, is that program."""
    return Regex(NUMBERED.sub(r"\\(\1\\)", pattern), name)
