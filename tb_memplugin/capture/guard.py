"""Failures of capturing, reported as one line of the log each, so that they never end a training.

The logger is `tb_memplugin.capture`. It is a logger, not the `warnings` module: with `python -W error`, a warning would
be an exception in the training loop.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any

logger = logging.getLogger("tb_memplugin.capture")

MAX_WARNINGS = 20  # of a process: a script may use a new logdir, and so fail for a new cause, at every step
MAX_LENGTH = 500  # characters of a warning
SLOW_SECONDS = 1.0
PAUSE_FACTOR = 100  # slow failures take 1 % of the time at most

_warned: set[tuple[object, ...]] = set()


def warn(failure: str, error: BaseException | str) -> None:
    """Log a failure in one line, once for each kind of error. Never raises."""
    try:
        cause = (failure, type(error), getattr(error, "errno", error if isinstance(error, str) else None))
        if cause in _warned or len(_warned) >= MAX_WARNINGS:
            return
        _warned.add(cause)
        line = " ".join(f"tb_memplugin: {failure}: {describe(error)}".split())
        logger.warning("%s", line if len(line) <= MAX_LENGTH else f"{line[:MAX_LENGTH]}...")
    except Exception:  # raised by the text of an error, or by a handler of the user's logging
        return


def inform(text: str) -> None:
    """Log what was done. Never raises, as where standard error is closed."""
    with suppress(Exception):
        logger.info("tb_memplugin: %s", text)


def describe(error: BaseException | str) -> str:
    """Return the type and the text of an error."""
    if isinstance(error, str):
        return error
    text = text_of(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def text_of(error: BaseException) -> str:
    """Return the text of an error; empty for one that has none, or fails to make it."""
    try:
        return str(error)
    except Exception:
        return ""


@contextmanager
def quietly(failure: str) -> Iterator[None]:
    """Turn exceptions of the block into warnings: `failure` is what could not be done.

    Only subclasses of Exception: Ctrl+C, and what a user's signal handler raises to end the training, pass.
    """
    try:
        yield
    except Exception as error:
        warn(failure, error)


@contextmanager
def annotated(failure: str, annotate: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """Run the block inside an annotation of a profiler; without one where the profiler fails."""
    with ExitStack() as stack:
        with quietly(failure):
            stack.enter_context(annotate())
        try:
            yield
        finally:
            with quietly(failure):
                stack.close()


class SlowFailures:
    """A pause after attempts that failed slowly, as where a remote store waits for credentials."""

    def __init__(self) -> None:
        self._resume = float("-inf")

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Time an attempt, and pause if it fails after more than a second."""
        began = time.monotonic()
        try:
            yield
        except Exception:
            now = time.monotonic()
            if now - began > SLOW_SECONDS:
                self._resume = now + PAUSE_FACTOR * (now - began)
            raise

    @property
    def is_pausing(self) -> bool:
        return time.monotonic() < self._resume
