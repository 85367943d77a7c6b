"""Source frames: their owner (user or framework) and their text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tb_memplugin.model.arrays import I32
from tb_memplugin.model.tables import Stacks

FRAMEWORK_PATH = re.compile(
    r"(^|/)(site-packages|dist-packages|lib/python3[^/]*|tb_memplugin/fit|jax/_src|jaxlib|flax/(linen|nnx|core)|haiku/_src)/"
    r"|(^|/)torch/(_\w+\.py$|(nn|optim|autograd|utils)/)"
    r"|^<frozen |^<__array_function__"
    r"|\.(cc?|cpp|cu|h|hpp|so|pyx)$|^\?*$"
)
# Profilers record some files without folders. FRAMEWORK_FILES are names that only JAX, Jupyter and Python use.
# AMBIGUOUS_FILES may be a user's too: they count as a framework's only if a framework calls them.
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
    files = stacks.file.strings
    of_file = [_owner(files[code]) for code in range(len(files))] + [FrameOwner.FRAMEWORK]
    parents, codes = stacks.parent.tolist(), stacks.file.codes.tolist()
    framework: dict[int, bool] = {}
    for leaf in leaves:
        chain, next_frame = list[int](), int(leaf)
        pending = set[int]()
        while 0 <= next_frame < len(parents) and next_frame not in framework and next_frame not in pending:
            chain.append(next_frame)
            pending.add(next_frame)
            next_frame = parents[next_frame]
        caller = next_frame if next_frame in framework else -1
        for frame in reversed(chain):
            owner = of_file[codes[frame]]
            called = owner is FrameOwner.CALLER and framework.get(caller, False)
            framework[frame] = owner is FrameOwner.FRAMEWORK or called
            yield Frame(frame, caller, framework[frame])
            caller = frame


def framework_frames(stacks: Stacks) -> npt.NDArray[np.bool_]:
    """Mark the frameworks' frames, for all frames at once; callers_first agrees with it."""
    owner = stacks.file.map(_owner, FrameOwner.FRAMEWORK, np.uint8)
    decides = nearest_frames(stacks, owner != FrameOwner.CALLER)
    found: npt.NDArray[np.bool_] = np.r_[owner == FrameOwner.FRAMEWORK, False][decides]
    return found


def nearest_frames(stacks: Stacks, wanted: npt.NDArray[np.bool_]) -> I32:
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
