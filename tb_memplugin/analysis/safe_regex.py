"""Regular expressions that people and links give, on names that files give: neither may keep a server busy for long."""

from __future__ import annotations

import re

from tb_memplugin.errors import InputError

MAX_LENGTH = 500  # characters, of a pattern and of what of a name is looked at
SINGLE_CHARACTER = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
INNERMOST_GROUP = re.compile(r"\(([^()]*)\)([*+]|\{\d*,\d*\})?")
AMBIGUOUS = re.compile(r"[*+|]|\{\d*,\d*\}")


def compile_regex(pattern: str, name: str) -> re.Pattern[str]:
    """InputError, naming the parameter, where it is no regular expression or one that may never end."""
    where = f"{name}={pattern[:80]}"
    if len(pattern) > MAX_LENGTH:
        raise InputError("Not a regular expression", where, f"it is longer than {MAX_LENGTH} characters")
    try:
        expression = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError("Not a regular expression", where, str(error)) from error
    if _repeats_ambiguous_group(pattern):
        remedy = "repeat no group that holds repeats or alternatives, such as (a+)+: they may take for ever"
        raise InputError("Not a regular expression that can be used", where, remedy)
    return expression


def _repeats_ambiguous_group(pattern: str) -> bool:
    """Whether a group that may match in several ways is repeated: then a match can take exponentially long."""
    plain = SINGLE_CHARACTER.sub("c", pattern)
    while group := INNERMOST_GROUP.search(plain):
        many, repeated = bool(AMBIGUOUS.search(group[1])), bool(group[2])
        if many and repeated:
            return True
        plain = f"{plain[: group.start()]}{'c+' if many or repeated else 'c'}{plain[group.end() :]}"
    return False
