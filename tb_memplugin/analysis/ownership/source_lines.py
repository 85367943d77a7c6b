"""Source frames, the source line of each allocation, and the user's line with the most memory at the peak."""

import re
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tb_memplugin.analysis.memoize import memoize
from tb_memplugin.analysis.ownership.roles import roles
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.analysis.usage.live_set import live_rows
from tb_memplugin.model.arrays import I32, I64, Mask
from tb_memplugin.model.kinds import Axis, Role
from tb_memplugin.model.recording import Recording
from tb_memplugin.model.tables import Stacks
from tb_memplugin.model.text import Text
from tb_memplugin.native.numbering import number_values

FRAMEWORK_PATH = re.compile(
    r"(^|/)(site-packages|dist-packages|lib/python3[^/]*|tb_memplugin/fit"
    r"|jax/_src|jaxlib|flax/(linen|nnx|core)|haiku/_src)/"
    r"|(^|/)torch/(_\w+\.py$|(nn|optim|autograd|utils)/)"
    r"|^<frozen |^<__array_function__"
    r"|\.(cc?|cpp|cu|h|hpp|so|pyx)$|^\?*$"
)
# Profilers record some files without folders. FRAMEWORK_FILES are names that only JAX, Jupyter and Python use. Users
# may use the names in AMBIGUOUS_FILES, so such files count as a framework's only if a framework calls them.
FRAMEWORK_FILES = {
    "ad_checkpoint.py", "api_util.py", "array_methods.py", "base_events.py", "batching.py", "contextlib.py",
    "custom_batching.py", "custom_derivatives.py", "dispatch.py", "functools.py", "interactiveshell.py", "ipkernel.py",
    "kernelapp.py", "kernelbase.py", "lax_numpy.py", "linear_util.py", "mlir.py", "partial_eval.py", "pjit.py",
    "pxla.py", "runpy.py", "sharding_impls.py", "source_info_util.py", "threading.py", "traceback_util.py",
    "tree_util.py", "ufuncs.py", "xla_bridge.py", "zmqshell.py",
}  # fmt: skip
AMBIGUOUS_FILES = {
    "_base.py", "api.py", "array.py", "array_constructors.py", "basearray.py", "compilation_cache.py", "compiler.py",
    "config.py", "core.py", "dtypes.py", "lax.py", "layout.py", "loops.py", "mesh.py", "profiler.py", "random.py",
    "stages.py", "util.py",
}  # fmt: skip


class FrameOwner(IntEnum):
    USER = 0
    CALLER = 1  # the owner of the calling frame
    FRAMEWORK = 2


class Frame(NamedTuple):
    frame: int
    caller: int  # -1 for an outermost frame
    framework: bool


def callers_first(stacks: Stacks, leaves: Iterable[int]) -> Iterator[Frame]:
    """Yield every frame of the stacks with these leaves once, callers first. Cycles in corrupt files are cut."""
    of_file = [*map(_owner, stacks.file.strings), FrameOwner.FRAMEWORK]
    parents, codes = stacks.parent.tolist(), stacks.file.codes.tolist()
    framework: dict[int, bool] = {}
    for leaf in leaves:
        chain, next_frame = dict[int, None](), int(leaf)  # in order
        while 0 <= next_frame < len(parents) and next_frame not in framework and next_frame not in chain:
            chain[next_frame] = None
            next_frame = parents[next_frame]
        caller = next_frame if next_frame in framework else -1
        for frame in reversed(chain):
            owner = of_file[codes[frame]]
            called = owner is FrameOwner.CALLER and framework.get(caller, False)
            framework[frame] = owner is FrameOwner.FRAMEWORK or called
            yield Frame(frame, caller, framework[frame])
            caller = frame


def framework_frames(stacks: Stacks) -> Mask:
    """Mark the frameworks' frames, for all frames at once; callers_first gives the same answer."""
    owner = stacks.file.map(_owner, FrameOwner.FRAMEWORK, np.uint8)
    decides = nearest_frames(stacks, owner != FrameOwner.CALLER)
    found: Mask = np.r_[owner == FrameOwner.FRAMEWORK, False][decides]
    return found


def nearest_frames(stacks: Stacks, wanted: Mask) -> I32:
    """Return per frame the innermost wanted frame among itself and its callers, -1 for none.

    Pointer doubling looks twice as far up each round. Cycles in corrupt files are cut.
    """
    n = len(stacks.parent)
    at = np.where(wanted, np.arange(n), stacks.parent)
    for _ in range(max(n, 1).bit_length() + 1):
        further = np.where(at >= 0, np.r_[at, -1][at], -1)
        if (further == at).all():
            break
        at = further
    return np.where(np.r_[wanted, False][at], at, -1).astype(np.int32)


def _owner(file: str) -> FrameOwner:
    if FRAMEWORK_PATH.search(file.replace("\\", "/")) or file in FRAMEWORK_FILES:
        return FrameOwner.FRAMEWORK
    return FrameOwner.CALLER if file in AMBIGUOUS_FILES else FrameOwner.USER


def frame_text(stacks: Stacks, frame: int) -> str:
    """Return `layer (model.py:20)`. A runtime's frame has no file; a frame from an error message has no function."""
    function, file = stacks.function[frame], stacks.file[frame]
    place = f"{file}:{stacks.line[frame]}"
    return (f"{function} ({place})" if function else place) if file else function or "unnamed"


LINE = re.compile(r".+\.py:\d+", re.DOTALL)


class HeaviestLine(NamedTuple):
    line: str  # `train.py:86`, or with folders
    bytes: int  # of live allocations


@memoize
def source_frames(recording: Recording) -> I32:
    """Return per frame the innermost user frame, else the innermost Python frame, among itself and its callers."""
    own = user_frames(recording)
    return np.where(own >= 0, own, nearest_frames(recording.stacks, recording.stacks.file.nonempty))


@memoize
def user_frames(recording: Recording) -> I32:
    """Return per frame the innermost frame of the user's code among itself and its callers, -1 for none."""
    return nearest_frames(recording.stacks, ~framework_frames(recording.stacks))


@memoize
def source_lines(recording: Recording) -> Text:
    """Return each row's source line, `folder/train.py:12`, by `source_frames`; empty without one."""
    stacks, files = recording.stacks, recording.stacks.file
    frames, code = np.unique(of_rows(source_frames(recording), recording.allocations.stack), return_inverse=True)
    texts = [f"{files[frame]}:{stacks.line[frame]}" if frame >= 0 and files[frame] else "" for frame in frames.tolist()]
    return Text.of(texts).take(code)  # equal texts get one code, since the page groups rows by code


@memoize
def heaviest_line(recording: Recording) -> HeaviestLine | None:
    """Return the line with the most bytes at the peak, without its folders; None if no line is known."""
    found, _ = heavy_lines(recording, peak(recording).position, 1)
    return HeaviestLine(base_name(found[0].line), found[0].bytes) if found else None


def heavy_lines(
    recording: Recording, position: int, most: int | None, role: Role | None = None
) -> tuple[list[HeaviestLine], int]:
    """Return the `most` lines with the most live bytes, by the user's innermost frames, and the number of all lines.

    A row whose name is a line, as `track()` names arrays, counts for that line. With a role, its rows only.
    """
    live = live_rows(recording, position)
    if role is not None:
        live = live[roles(recording)[live] == role]
    charge, files = recording.allocations.charge[live], recording.stacks.file
    frame = of_rows(user_frames(recording), recording.allocations.stack[live])
    known = np.r_[files.nonempty, False][frame]
    named = ~known & named_for_line(recording)[live]
    of_frames, frames = _of_frames(recording.stacks, frame[known], charge[known], most)
    of_names, names = _of_names(recording.allocations.name.take(live[named]), charge[named], most)
    return sorted([*of_frames, *of_names], key=lambda line: -line.bytes)[:most], frames + names


def _of_frames(stacks: Stacks, frame: I32, charge: I64, most: int | None) -> tuple[list[HeaviestLine], int]:
    if not len(frame):
        return [], 0
    # A line has one frame for each of its callers. Numbering lines takes a tenth of the time of sorting them.
    places, which = number_values((stacks.file.codes.astype(np.int64) << 32)[frame] + stacks.line[frame])
    held = np.bincount(which, charge).astype(np.int64)
    found = []
    for place, size in _heaviest(places, held, most):
        file, line = divmod(place + 2**31, 2**32)  # a damaged file may have lines below 0
        found.append(HeaviestLine(f"{stacks.file.strings[file]}:{line - 2**31}", size))
    return found, len(places)


def _of_names(names: Text, charge: I64, most: int | None) -> tuple[list[HeaviestLine], int]:
    if not len(names):
        return [], 0
    held = np.bincount(names.codes, charge).astype(np.int64)
    found = _heaviest(np.arange(len(held)), held, most)
    return [HeaviestLine(names.strings[code], size) for code, size in found], int(np.count_nonzero(held))


def _heaviest(keys: I64, held: I64, most: int | None) -> list[tuple[int, int]]:
    """Return the keys with the most bytes, and their bytes; keys without bytes are left out."""
    order = np.argsort(-held, kind="stable")[:most]
    return [(key, size) for key, size in zip(keys[order].tolist(), held[order].tolist(), strict=True) if size]


def of_rows(of_frame: I32, stack: I32) -> I32:
    """Return, for rows with these call stacks, the value of each innermost frame, -1 for rows without a stack."""
    known = (stack >= 0) & (stack < len(of_frame))
    found: I32 = np.r_[of_frame, np.int32(-1)][np.where(known, stack, -1)]
    return found


def named_for_line(recording: Recording) -> Mask:
    """Mark a runtime's rows that are named after a Python line, as `track()` names arrays."""
    names = recording.allocations.name
    if recording.axis is not Axis.TIME:
        return np.zeros(len(names), dtype=bool)
    return names.where(LINE.fullmatch)


def base_name(line: str) -> str:
    """Return a line without its folders."""
    return line.replace("\\", "/").rpartition("/")[2]
