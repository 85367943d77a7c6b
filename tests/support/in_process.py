"""An executor that runs a task where it is submitted."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class InProcess:
    """Runs tasks at once, and remembers their functions."""

    def __init__(self) -> None:
        self.functions: list[str] = []

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        self.functions.append(function.__name__)
        future: Future[T] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future

    def stop(self) -> None:
        pass
