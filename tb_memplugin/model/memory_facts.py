"""The contents of a recording's memory, in few rows with names that stay the same from one compile to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tb_memplugin.model.kinds import RecordingKind


@dataclass(frozen=True, slots=True)
class ArgumentFacts:
    """Arrays of a program's arguments with one path, `state/mu/layer_*/w`: of all layers together."""

    path: str
    role: str
    shape: str  # of the largest array, on one device
    arrays: int
    bytes: int
    donated_bytes: int  # of these, bytes whose memory a result reuses
    sharding: str = ""  # mesh axis of each dimension, `data,-`; empty: unknown, or one device
    copies: int = 1  # devices with the same part
    layers: int = 1  # layers that the `*` of the path stands for


@dataclass(frozen=True, slots=True)
class ArrayFacts:
    """Arrays of one path, role and shape: those live at the peak, or all activations that are saved."""

    path: str  # a result that returns an argument updated has the argument's path
    function: str  # the innermost function of the user's code; empty: unknown, or the path has scopes
    role: str
    shape: str
    arrays: int
    layers: int  # layers that the `*` of the path stands for; 1 without one
    bytes: int


@dataclass(frozen=True, slots=True)
class FusedFacts:
    """Operations inside of fusions whose results are nowhere in memory."""

    path: str
    shape: str
    fusion: str  # the name of one of these fusions
    arrays: int
    bytes: int  # that they would take


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """The figures of a recording, and what takes its memory. Arrays below `floor_bytes` are left out."""

    kind: RecordingKind
    name: str  # without the number that a compiler or a profile adds
    memory: str
    peak_bytes: int
    reserved_bytes: int | None
    roles: Mapping[str, int] = field(default_factory=dict)  # bytes at the peak
    devices: int = 1
    floor_bytes: int = 0
    arguments: tuple[ArgumentFacts, ...] = ()
    arrays: tuple[ArrayFacts, ...] = ()  # live at the peak, arguments included
    saved: tuple[ArrayFacts, ...] = ()  # activations, live at the peak or not
    fused: tuple[FusedFacts, ...] = ()
