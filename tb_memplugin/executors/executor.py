"""The interface of executors."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class TaskExecutor(Protocol):
    """Runs functions somewhere, and can stop."""

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        """Run a function when there is room. For other processes, the function and its arguments must pickle."""

    def stop(self) -> None:
        """Cancel what waits, and what runs as far as it can be ended: such futures raise CancelledError.

        Later tasks are refused.
        """
