"""Regular expressions that people and links give, on names that files give: neither may keep a server busy for long."""

from __future__ import annotations

import re

from tb_memplugin.errors import InputError

LONGEST = 500  # characters, of a pattern and of what of a name is looked at
ONE_CHARACTER = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
INNERMOST = re.compile(r"\(([^()]*)\)([*+]|\{\d*,\d*\})?")
MANY_WAYS = re.compile(r"[*+|]|\{\d*,\d*\}")


def compiled(pattern: str, name: str) -> re.Pattern[str]:
    """InputError, naming the parameter, where it is no regular expression or one that may never end."""
    where = f"{name}={pattern[:80]}"
    if len(pattern) > LONGEST:
        raise InputError("Not a regular expression", where, f"it is longer than {LONGEST} characters")
    try:
        expression = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError("Not a regular expression", where, str(error)) from error
    if _nested(pattern):
        remedy = "repeat no group that holds repeats or alternatives, such as (a+)+: they may take for ever"
        raise InputError("Not a regular expression that can be used", where, remedy)
    return expression


def _nested(pattern: str) -> bool:
    """Whether a group that may match in several ways is repeated: then a match can take exponentially long."""
    plain = ONE_CHARACTER.sub("c", pattern)
    while group := INNERMOST.search(plain):
        many, repeated = bool(MANY_WAYS.search(group[1])), bool(group[2])
        if many and repeated:
            return True
        plain = f"{plain[: group.start()]}{'c+' if many or repeated else 'c'}{plain[group.end() :]}"
    return False
