"""Candidates of a fit, and what compiling each gave.

A candidate is a user's step with values of its knobs, compiled for a target. Its outcome is kept beside the compiled
program as `fit.json`, of the same keys as `tb-memplugin fit --json`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict, TypeGuard

from tb_memplugin.model.kinds import Labeled

Knob = int | float | str | bool
Knobs = tuple[tuple[str, Knob], ...]


def is_number(value: Knob | None) -> TypeGuard[int | float]:
    """Return whether a value is a number, which true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def parse_value(text: str) -> Knob:
    """Return a number, true or false where the text is one, else the text."""
    if (truth := text.lower()) in ("true", "false"):
        return truth == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


RECORD = "fit.json"
RECOMPUTED = "remat:full"  # a change: the backward pass computes the bodies of all scans again
# Names of knobs that split a batch into parts, by libraries and by custom.
MICROBATCHES = (
    "microbatches", "num_microbatches", "n_microbatches", "accumulate", "accumulation", "accumulation_steps",
    "accum_steps", "grad_accum", "grad_accum_steps", "gradient_accumulation", "gradient_accumulation_steps",
    "grad_accumulation_steps", "num_accumulation_steps", "every_k_schedule",
)  # fmt: skip


class OfTorch(Labeled):
    """A change to a step of PyTorch."""

    CHECKPOINT = "torch:checkpoint", "Checkpoint the repeated blocks"
    AUTOCAST = "torch:autocast", "Compute in bfloat16 (autocast)"
    FUSED = "torch:fused", "Use the fused optimizer"
    EIGHT_BIT = "torch:8bit", "Keep the optimizer's state in 8 bits"
    OFFLOAD = "torch:offload", "Offload saved tensors to the host"
    CLEAR = "torch:zero-grad", "Free gradients after the update"
    CHUNKED_LOSS = "torch:chunked-loss", "Compute logits and loss in eight chunks"
    COMPILE = "torch:compile", "Compile the model (torch.compile)"
    ACCUMULATE = "torch:accumulate", "Compute the gradient in two halves of the batch"
    FSDP = "torch:fsdp", "Shard the model over all GPUs (FSDP)"


class RematKind(Labeled):
    """A kind of policy: the values of the forward pass that the backward pass keeps. The others are computed again."""

    NONE = "none", "recompute nothing"
    FULL = "full", "recompute layers"
    DOTS = "dots", "keep only products with weights"
    NAMES = "names", "keep only {names}"
    OFFLOAD = "offload", "offload {names}"


# In jax.checkpoint_policies.
POLICIES = {
    RematKind.NONE: "everything_saveable",
    RematKind.FULL: "nothing_saveable",
    RematKind.DOTS: "dots_with_no_batch_dims_saveable",
    RematKind.NAMES: "save_only_these_names",
    RematKind.OFFLOAD: "save_and_offload_only_these_names",
}


@dataclass(frozen=True)
class Remat:
    """A policy of rematerialization; two kinds have names of arrays, as `checkpoint_name` gives them."""

    kind: RematKind
    names: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return self.kind.label.format(names=", ".join(self.names))

    @property
    def options(self) -> dict[str, object]:
        """The keyword arguments of the policy."""
        if self.kind is not RematKind.OFFLOAD:
            return {}
        offloaded = {"names_which_can_be_saved": [], "names_which_can_be_offloaded": [*self.names]}
        return {**offloaded, "offload_src": "device", "offload_dst": "pinned_host"}

    @property
    def code(self) -> str:
        """The policy as a user writes it, from `jax.checkpoint_policies`."""
        positional = map(repr, self.names if self.kind is RematKind.NAMES else ())
        arguments = ", ".join([*positional, *(f"{name}={value!r}" for name, value in self.options.items())])
        return f"{POLICIES[self.kind]}({arguments})" if self.names else POLICIES[self.kind]


def parse_remat(text: str) -> Remat | None:
    """Parse a policy such as `full` or `names:attention,mlp`; None for a text that is none."""
    kind, _, names = text.partition(":")
    if kind not in [*RematKind]:
        return None
    found = Remat(RematKind(kind), tuple(filter(None, names.split(","))))
    return found if bool(found.names) == (found.kind in (RematKind.NAMES, RematKind.OFFLOAD)) else None


def remat_of(changes: Iterable[str]) -> Remat | None:
    """Return the policy among changes; None without one."""
    rests = (rest for kind, _, rest in (change.partition(":") for change in changes) if kind == "remat")
    return next(filter(None, map(parse_remat, rests)), None)


@dataclass(frozen=True)
class Candidate:
    """A step with values of its knobs, for a target."""

    step: str  # FILE.py:FUNCTION, MODULE:FUNCTION, or a program of an XLA dump: FILE.before_optimizations.hlo.pb:MODULE
    target: str  # as in v5e:4x4
    knobs: Knobs = ()
    changes: tuple[str, ...] = ()  # made to the program before it is compiled, to try advice


def dumped_files(step: str) -> str:
    """Return what the paths of a dumped program's files begin with; empty for a step that is a function."""
    found = re.fullmatch(r"(.+)\.before_optimizations\.hlo\.pb(?:\.gz)?:[^:/]*", step)
    return found[1] if found is not None else ""


@dataclass(frozen=True)
class PeakPart:
    """A part of the memory at the peak, such as the activations of some layers."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Outcome:
    """The result of compiling a candidate, in bytes per device; sizes are None where there is no program."""

    candidate: Candidate
    seconds: float = 0.0
    reserved_bytes: int | None = None  # what compilers compare with the limit
    peak_bytes: int | None = None
    capacity_bytes: int | None = None  # of the target, for programs; None where the host's memory is the limit
    limit_bytes: int | None = None  # the budget, else the capacity
    rematerialized: int = 0  # instructions that the compiler runs twice by itself
    rematerialized_flops: float = 0.0  # their share of the program's floating-point operations
    step_seconds: float = 0.0  # of a run, estimated; 0: unknown
    utilization: float = 0.0  # the share of the chip's published FLOPs per second (MFU) that its products would reach
    bound_seconds: Mapping[str, float] = field(default_factory=dict)  # of the step, by what binds them
    work_seconds: Mapping[str, float] = field(default_factory=dict)  # of recomputation, collectives and copies
    vmem_bytes: int = 0  # of the Pallas kernel that takes most; spills are known once it is compiled to the end
    tokens: int = 0  # of a step's batch, on all devices together; 0: unknown
    policies: tuple[str, ...] = ()  # changes of what the step's backward pass keeps, which can be tried
    roles: Mapping[str, int] = field(default_factory=dict)  # bytes at the peak by role
    parts: tuple[PeakPart, ...] = ()  # the largest parts of the peak, largest first
    searched: str = ""  # the knob whose largest value is searched
    run: str = ""  # name in the logdir
    doubtful: bool = False  # the compiler may still refuse it for its code or its kernels, which are compiled last
    refused: str = ""  # by the compiler, where its code or a kernel needs more memory than is left
    error: str = ""
    traceback: str = ""  # of the user's own code
    versions: Mapping[str, str] = field(default_factory=dict)  # jax, jaxlib, and libtpu or the CUDA plugin
    caveats: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Return whether the program fits: compilers compare what it reserves with the limit."""
        size = self.compared_bytes
        return size is not None and (self.limit_bytes is None or size <= self.limit_bytes)

    @property
    def is_traced(self) -> bool:
        """Return whether it is a step of PyTorch, which is traced instead of compiled."""
        return "torch" in self.versions

    @property
    def is_refused_for_kernel(self) -> bool:
        """Return whether a kernel needs too much of the chip's own memory, whatever the program reserves."""
        return re.search(r"\b(vmem|smem)\b", self.refused) is not None

    @property
    def compared_bytes(self) -> int | None:
        """The bytes to compare with the limit; None of a program that the compiler refuses, or that is not there."""
        return None if self.refused else self.reserved_bytes

    @property
    def left_bytes(self) -> int | None:
        """The bytes of the limit that are left, negative where it does not fit; None without a limit or a program."""
        if self.limit_bytes is None or self.reserved_bytes is None:
            return None
        return self.limit_bytes - self.reserved_bytes

    def __repr__(self) -> str:
        knobs = "".join(f", {name}={value}" for name, value in self.candidate.knobs)
        limit = f" of {self.limit_bytes / 2**30:.2f} GiB" if self.limit_bytes is not None else ""
        size = f"{self.reserved_bytes / 2**30:.2f} GiB{limit} reserved" if self.reserved_bytes is not None else ""
        answer = f"{'fits' if self.fits else 'does not fit'}, {size}" if size else self.error
        return f"<{self.candidate.step.rpartition(':')[2]} on {self.candidate.target}{knobs}: {answer}>"


class PartJson(TypedDict):
    """A part of the memory at the peak."""

    name: str
    """The part, such as the activations of a layer."""
    bytes: int
    """Its bytes at the peak."""


class CandidateJson(TypedDict):
    """A step with values of its knobs, compiled for a target; sizes are in bytes of one device."""

    step: str
    """The user's function, as `FILE.py:FUNCTION`."""
    target: str
    """The target, such as `v5e:4x4`."""
    knobs: dict[str, Knob]
    """The values of the knobs, by name."""
    changes: list[str]
    """The changes to the program that `--try` made; empty for the user's own."""
    fits: bool
    """True if the reserved bytes are within the limit; false where there is no program."""
    reserved_bytes: int | None
    """The bytes that the program requests from a device; null where it could not be compiled."""
    peak_bytes: int | None
    """The most live bytes at one position of its schedule."""
    limit_bytes: int | None
    """The budget, else the capacity."""
    rematerialized: int
    """The number of instructions that the compiler runs twice by itself, to save memory."""
    step_seconds: float | None
    """The estimated time of one run of the program; null where the target's speed is unknown."""
    utilization: float | None
    """The share of the chip's published FLOPs per second (MFU) that its matrix products reach in that time."""
    work_seconds: dict[str, float]
    """The estimated seconds of the step that `recomputation`, `collectives` and `copies` take, the most first."""
    vmem_bytes: int | None
    """The VMEM of the Pallas kernel that takes most: windows into operands, scratch memory, and spills once known."""
    parts: list[PartJson]
    """The largest parts of the peak."""
    seconds: float
    """The time of the compilation."""
    run: str | None
    """The name of its run in the logdir."""
    error: str | None
    """The reason why there is no program, or why the compiler refuses one that is within the limit."""
    caveats: list[str]
    """Facts that the figures leave out."""


class OutcomeJson(CandidateJson):
    """A candidate in full, as `fit.json` contains it; `error` is only that of a program that is missing."""

    searched: str | None
    """The knob whose largest value is searched."""
    capacity_bytes: int | None
    """The part of the target's memory that a program may use; null for CPU."""
    rematerialized_flops: float
    """Their share of the program's floating-point operations."""
    bound_seconds: dict[str, float]
    """The estimated seconds of the step by what binds them, such as `matrix products` or `memory`."""
    tokens: int | None
    """The tokens of a step's batch, on all devices together; null where no argument has a sequence for each item."""
    policies: list[str]
    """Changes of what the step's backward pass keeps, which can be tried, such as `remat:names:attention`."""
    roles_bytes: dict[str, int]
    """Live bytes at the peak, by role."""
    doubtful: bool
    """True if the compiler may still refuse it for its code or its kernels, as it was not compiled to the end."""
    refused: str | None
    """The reason why the compiler refused the program at the end of its compilation."""
    traceback: str | None
    """The traceback of the user's own code."""
    versions: dict[str, str]
    """The versions of jax, jaxlib and the compiler's package."""


def outcome_json(outcome: Outcome) -> OutcomeJson:
    """Return the JSON object of an outcome."""
    candidate = outcome.candidate
    return {
        "step": candidate.step,
        "target": candidate.target,
        "knobs": dict(candidate.knobs),
        "changes": list(candidate.changes),
        "searched": outcome.searched or None,
        "fits": outcome.fits,
        "reserved_bytes": outcome.reserved_bytes,
        "peak_bytes": outcome.peak_bytes,
        "capacity_bytes": outcome.capacity_bytes,
        "limit_bytes": outcome.limit_bytes,
        "rematerialized": outcome.rematerialized,
        "rematerialized_flops": outcome.rematerialized_flops,
        "step_seconds": outcome.step_seconds or None,
        "utilization": outcome.utilization or None,
        "bound_seconds": dict(outcome.bound_seconds),
        "work_seconds": dict(outcome.work_seconds),
        "vmem_bytes": outcome.vmem_bytes or None,
        "tokens": outcome.tokens or None,
        "policies": list(outcome.policies),
        "roles_bytes": dict(outcome.roles),
        "parts": [{"name": part.name, "bytes": part.bytes} for part in outcome.parts],
        "seconds": round(outcome.seconds, 3),
        "run": outcome.run or None,
        "doubtful": outcome.doubtful,
        "refused": outcome.refused or None,
        "error": outcome.error or None,
        "traceback": outcome.traceback or None,
        "versions": dict(outcome.versions),
        "caveats": list(outcome.caveats),
    }


@dataclass(frozen=True)
class MemoryLine:
    """Memory as a line against a knob, in bytes, for as long as the compiler recomputes nothing."""

    fixed_bytes: int
    bytes_per_item: int
    last_value: int  # up to which the line was seen to hold
    fixed_roles: Mapping[str, int]  # the parts of the fixed bytes by role, largest first


@dataclass(frozen=True)
class LargestValue:
    """The largest value of a searched knob that fits. Without a search it is the candidate itself, if it fits."""

    target: str
    knobs: Knobs  # other than the searched one
    searched: str  # "" without a search
    largest: Outcome | None  # None if no value fits
    last: Outcome  # the one to explain: the largest, else the smallest one
    without_recomputation: int | None = None  # the largest value before the compiler runs instructions twice
    recomputed: tuple[Outcome, ...] = ()  # those that fit because the compiler runs instructions twice, in rising order
    line: MemoryLine | None = None
    at_end: bool = False  # no larger value was tried: the range ends here
    failed: tuple[Outcome, ...] = ()  # values for which there is no program, in rising order
    smaller: tuple[Outcome, ...] = ()  # on slices that were tried before this target, where nothing fits

    @property
    def value(self) -> Knob | None:
        """The value of the searched knob; None if no value fits, and without a search."""
        return dict(self.largest.candidate.knobs).get(self.searched) if self.largest is not None else None

    def __repr__(self) -> str:
        value = self.value if self.largest is not None else "none"
        searched = f"largest {self.searched} {value}, " if self.searched else ""
        return f"<{searched}{self.last!r}>"


@dataclass(frozen=True)
class Tried:
    """A piece of advice about a candidate, carried out, and what it gave; without `changes` it is estimated only.

    `after` is the changed program at the same value of the searched knob. Pieces that need a change of the user's code
    have no such program: `saving_bytes` is replayed, and the value follows from memory as a line against the knob.
    """

    target: str
    knobs: Knobs  # other than the searched one
    searched: str
    title: str
    changes: tuple[str, ...]
    before: Outcome
    after: Outcome | None
    value: Knob | None  # the largest one, before; None if none fits, and without a search
    new_value: Knob | None  # None where it is less than any value that was searched, and without a search
    saving_bytes: int | None  # of memory reserved; of the peak, where it is replayed
    promised_bytes: int  # what advice expects of the peak, as far as is safe to count on
    at_end: bool = False  # the new value is the last one that was searched: a larger one may fit
    error: str = ""

    @property
    def is_compiled(self) -> bool:
        return bool(self.changes)

    @property
    def helps(self) -> bool:
        """Return whether the change saves memory or allows a larger value."""
        if self.error:
            return False
        before, now = (int(value) if value is not None else -1 for value in (self.value, self.new_value))
        return now > before or (now == before and (self.saving_bytes or 0) > 0)
