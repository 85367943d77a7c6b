"""Regular expressions from users and links, checked so that none can keep the server busy."""

from __future__ import annotations

import re

from tb_memplugin.errors import InputError

MAX_LENGTH = 500  # characters of a pattern, and of each name that is searched
SINGLE_CHARACTER = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
INNERMOST_GROUP = re.compile(r"\(([^()]*)\)([*+]|\{\d*,\d*\})?")
AMBIGUOUS = re.compile(r"[*+|]|\{\d*,\d*\}")


def compile_regex(pattern: str, name: str) -> re.Pattern[str]:
    """Compile a pattern from the parameter `name`. Raise InputError if it is invalid or may take exponential time."""
    where = f"{name}={pattern[:80]}"
    if len(pattern) > MAX_LENGTH:
        raise InputError("Not a regular expression", where, f"it is longer than {MAX_LENGTH} characters")
    try:
        expression = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError("Not a regular expression", where, str(error)) from error
    if _repeats_ambiguous_group(pattern):
        remedy = "it may take exponential time: do not repeat groups that contain repeats or alternatives, as in (a+)+"
        raise InputError("Regular expression is too slow", where, remedy)
    return expression


def _repeats_ambiguous_group(pattern: str) -> bool:
    """Return True if a group that can match in several ways is repeated: such a match can take exponential time."""
    plain = SINGLE_CHARACTER.sub("c", pattern)
    while group := INNERMOST_GROUP.search(plain):
        many, repeated = bool(AMBIGUOUS.search(group[1])), bool(group[2])
        if many and repeated:
            return True
        plain = f"{plain[: group.start()]}{'c+' if many or repeated else 'c'}{plain[group.end() :]}"
    return False
