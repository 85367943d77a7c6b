"""What a request asks for: its query's parameters, checked."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from werkzeug.wrappers import Request

from tb_memplugin.errors import InputError

Choice = TypeVar("Choice", bound=StrEnum)


class BadParameter(InputError):
    """The caller's mistake, as opposed to something that is not there."""


def required(request: Request, name: str) -> str:
    value = request.args.get(name)
    if value is None:
        raise BadParameter("Parameter missing", name, "add it to the query")
    return value


def integer(request: Request, name: str, low: int, high: int, default: int | None = None) -> int:
    text = request.args.get(name)
    if text is None and default is not None:
        return default
    try:
        value = int(required(request, name))
    except ValueError:
        raise BadParameter("Not a whole number", f"{name}={text}", f"give one from {low} to {high}") from None
    if not low <= value <= high:
        raise BadParameter("Out of range", f"{name}={value}", f"give one from {low} to {high}")
    return value


def choice(request: Request, name: str, choices: type[Choice]) -> Choice:
    text = required(request, name)
    try:
        return choices(text)
    except ValueError:
        raise BadParameter("No such choice", f"{name}={text}", f"one of {', '.join(choices)}") from None
