"""Causes of a change of a recording's memory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ChangeCauseKind(StrEnum):
    """The kind of a cause. JSON contains these words."""

    DEVICES = "devices"  # the number of devices that the program is partitioned over
    ARGUMENT_ADDED = "argument_added"
    ARGUMENT_REMOVED = "argument_removed"
    SHARDING = "sharding"
    DTYPE = "dtype"
    SHAPE = "shape"  # of arguments, and of what is computed from them
    NOT_DONATED = "not_donated"
    DONATED = "donated"
    LAYERS = "layers"
    SAVED = "saved"  # activations
    FUSION_SPLIT = "fusion_split"
    FUSED = "fused"


@dataclass(frozen=True, slots=True)
class ChangeCause:
    """A change of the code or of the compiler's decisions, and what it adds to the peak."""

    kind: ChangeCauseKind
    names: tuple[str, ...]  # of arguments, a layer or a fusion; empty: of the whole program
    bytes: int  # negative: less than before
    before: str = ""
    after: str = ""
    arrays: int = 0  # that changed; of layers, functions and scans as a whole
    layers: int = 1
    shape: str = ""  # of the largest array
    example: str = ""  # the path of the largest array
    role: str = ""  # of an argument
    dimension: int | None = None  # of an argument, if it is the same for all


@dataclass(frozen=True, slots=True)
class Difference:
    """Arrays at the peak whose change has no known cause."""

    path: str
    function: str
    role: str
    shape: str
    arrays_before: int
    arrays_after: int
    bytes_before: int
    bytes_after: int

    @property
    def bytes(self) -> int:
        return self.bytes_after - self.bytes_before


@dataclass(frozen=True, slots=True)
class Explanation:
    """The causes of the change between two recordings, and the largest differences without one."""

    causes: tuple[ChangeCause, ...] = ()  # the largest first
    differences: tuple[Difference, ...] = ()
    unexplained_bytes: int = 0  # of the peak's change, those of all differences
