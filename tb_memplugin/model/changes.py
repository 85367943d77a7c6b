"""The contents of a recording's memory in few rows with stable names, and causes of a change of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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
    name: str  # `jit_step` of `jit_step.2(34)`
    memory: str
    peak_bytes: int
    reserved_bytes: int | None
    roles_bytes: Mapping[str, int] = field(default_factory=dict)  # bytes at the peak
    devices: int = 1
    floor_bytes: int = 0
    output_bytes: int | None = None  # of a program: results that reuse no argument's memory; None in older baselines
    microbatches: int | None = None  # of a program: iterations of the loop that computes its gradient; 1 without a loop
    arguments: tuple[ArgumentFacts, ...] = ()
    arrays: tuple[ArrayFacts, ...] = ()  # live at the peak, arguments included
    saved: tuple[ArrayFacts, ...] = ()  # activations that the forward pass saves, live at the peak or not
    fused: tuple[FusedFacts, ...] = ()
    elsewhere: tuple[str, ...] = ()  # arguments in another memory, such as the host's: paths with * for each number


class ChangeCauseKind(StrEnum):
    """The kind of a cause. JSON contains these words."""

    DEVICES = "devices"  # the number of devices that the program is partitioned over
    ARGUMENT_ADDED = "argument_added"
    ARGUMENT_REMOVED = "argument_removed"
    MEMORY = "memory"  # arguments that moved into this memory, or out of it
    SHARDING = "sharding"
    DTYPE = "dtype"
    SHAPE = "shape"  # of arguments, and of what is computed from them
    MICROBATCHES = "microbatches"  # the number of parts in which the gradient is computed
    NOT_DONATED = "not_donated"
    DONATED = "donated"
    LAYERS = "layers"
    SAVED = "saved"  # activations
    OUTPUT_ADDED = "output_added"
    OUTPUT_REMOVED = "output_removed"
    ATTENTION = "attention"  # scores of all positions against all, which are stored at once or in chunks
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
    arrays: int = 0  # number of arrays that changed, in all layers
    layers: int = 1
    shape: str = ""  # of the largest array
    example: str = ""  # the path of the largest array
    role: str = ""  # of an argument
    dimension: int | None = None  # of an argument, if it is the same for all
    moved_bytes: int = 0  # of `bytes`: those of other arrays, of the only cause; the peak is at another moment now


@dataclass(slots=True)
class Difference:
    """Arrays of one path, function, role and shape at two peaks."""

    path: str
    function: str
    role: str
    shape: str
    arrays_before: int = 0
    arrays_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0

    @property
    def bytes(self) -> int:
        return self.bytes_after - self.bytes_before


@dataclass(frozen=True, slots=True)
class Explanation:
    """The causes of the change between two recordings, and the largest differences without one."""

    causes: tuple[ChangeCause, ...] = ()  # the largest first
    differences: tuple[Difference, ...] = ()
    unexplained_bytes: int = 0  # of the peak's change, those of all differences
