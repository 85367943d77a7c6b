"""A recording that is read from its file in two steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

from tb_memplugin.model.arrays import I32
from tb_memplugin.model.cached_property import cached_property
from tb_memplugin.model.caveats import Caveat
from tb_memplugin.model.lazy import Lazy
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.source_tables import NamedSpans
from tb_memplugin.model.tables import Allocations, Stacks


class LazyRecording(Recording):
    """A recording whose call stacks, names and spans are read when one of its tables is first accessed.

    Sizes, lifetimes and the allocator's own figures are in `outline`, which is read at once. Code that needs no more
    uses `recording.outline` to be fast; code that does not think of it gets the complete tables. The tables have the
    same rows in the same order. Accessing them raises InputError where the rest of the file is damaged.
    """

    _outline: Recording
    _complete: Lazy[Recording]

    @staticmethod
    def of(outline: Recording, read: Callable[[], Recording]) -> LazyRecording:
        """Return a recording that calls `read` once, for the fields below; all others are the outline's."""
        recording = object.__new__(LazyRecording)
        copied = {f.name: getattr(outline, f.name) for f in fields(Recording) if f.name not in vars(LazyRecording)}
        vars(recording).update(copied, _outline=outline, _complete=Lazy(read))
        return recording

    @property
    def outline(self) -> Recording:
        outline: Recording = vars(self).get("_outline", self)  # a copy by dataclasses.replace has all fields instead
        return outline

    def load(self) -> Recording:
        if self.outline is not self:
            self._complete()
        return self

    @cached_property
    def allocations(self) -> Allocations:
        return self._complete().allocations

    @cached_property
    def stacks(self) -> Stacks:
        return self._complete().stacks

    @cached_property
    def spans(self) -> NamedSpans | None:
        return self._complete().spans

    @cached_property
    def free_stack(self) -> I32 | None:
        return self._complete().free_stack

    @cached_property
    def caveats(self) -> tuple[Caveat, ...]:
        return self._complete().caveats
