"""Executors that run a task where it is submitted."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

import pytest

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


class NoProcesses(InProcess):
    """Takes the place of LocalProcesses, whose processes import the package for each command.

    Tasks and their results are pickled, as on their way to other processes.
    """

    def __init__(self, workers: int | None = None) -> None:
        super().__init__()

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        task = pickle.loads(pickle.dumps((function, arguments, named)))
        return super().submit(_run, *task)


def _run(function: Callable[..., T], arguments: tuple[object, ...], named: dict[str, object]) -> T:
    result: T = pickle.loads(pickle.dumps(function(*arguments, **named)))
    return result


@pytest.fixture
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands and servers read the files of a fleet in this process."""
    for module in ("commands.fleet", "hosts.fleet_scans"):
        monkeypatch.setattr(f"tb_memplugin.{module}.LocalProcesses", NoProcesses)
