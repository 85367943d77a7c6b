"""Values that are computed on first access, and properties that each object computes once."""

import functools
from collections.abc import Callable
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):
        """As functools.cached_property, with a lock for each object that computes its value.

        In Python 3.11, all objects of a class share a lock: a request of a small program waited for the dataflow of a
        large one, and an answer waited until another one was compressed. From 3.12 on there is no lock, so two requests
        of a large program could both compute its dataflow.
        """

        def __init__(self, compute: Any) -> None:
            super().__init__(compute)
            self.computing: dict[int, RLock] = {}  # by the id of each object that computes its value

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            with self.computing.setdefault(id(instance), RLock()):
                kept = vars(instance)
                try:
                    if self.attrname not in kept:  # another thread has computed it meanwhile
                        kept[self.attrname] = self.func(instance)
                    return kept[self.attrname]
                finally:
                    self.computing.pop(id(instance), None)


T = TypeVar("T")


class Lazy(Generic[T]):
    """A value computed on the first call, then kept; its inputs are released. Safe to call from any thread."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._lock = Lock()
        self._compute: Callable[[], T] | None = compute
        self._result: list[T] = []

    def __call__(self) -> T:
        with self._lock:
            if self._compute is not None:
                self._result, self._compute = [self._compute()], None
            return self._result[0]

    @property
    def computed(self) -> bool:
        return self._compute is None
