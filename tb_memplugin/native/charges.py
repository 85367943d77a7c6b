"""Memory and work that a compiled loop may take."""

from typing import Protocol

NO_LIMIT = 1 << 62


class Charges(Protocol):
    """A limit to which a loop charges the bytes that its input makes it read and allocate."""

    @property
    def left(self) -> int:
        """Return how many bytes may still be charged."""

    def charge(self, nbytes: int) -> None:
        """Count bytes. If they exceed the limit, raise the error that the user gets."""

    def work(self, nbytes: int) -> None:
        """Count bytes that are read. If they exceed the limit, raise the error that the user gets."""


def left_of(budget: Charges | None, nbytes: int = 0) -> int:
    """Return the bytes that a loop may take. Charges the work of the `nbytes` that it reads."""
    if budget is None:
        return NO_LIMIT
    budget.work(nbytes)
    return budget.left


def exceeded(budget: Charges | None) -> MemoryError:
    """Raise the limit's own error for a loop that stopped at it; without a limit, return an error."""
    if budget is not None:
        budget.charge(budget.left + 1)
    return MemoryError("too many rows")
