"""Model paths: the keys of an argument's pytree path, or the pass, scopes and operation of an op_name.

`params['layer_3']['mlp']['up']` and `jit(step)/transpose(jvp(layer_3))/mlp/dot_general` both contain `layer_3`, `mlp`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import takewhile
from typing import NamedTuple

# No user's program nests scopes or transformations deeper than this. Deeper parts are dropped.
MAX_PARTS = 64
MAX_WRAPPERS = 16


class Pass(StrEnum):
    """A pass of a training step."""

    FORWARD = "forward"
    BACKWARD = "backward"
    REMATERIALIZED = "rematerialized"
    OTHER = "update and other"


Piece = tuple[list[str], str]  # one part of an op_name: its wrappers, outermost first, and the name inside them


class OpPath(NamedTuple):
    training_pass: Pass  # OTHER if the name does not contain it
    parts: tuple[str, ...]  # scopes, outermost first, and the operation


# JAX wraps a scope's name in the transformations of its function, `transpose(jvp(layer))`; the name may be empty.
WRAPPER = re.compile(r"(jit|pjit|pmap|xmap|jvp|transpose|vmap|remat|checkpoint|shard_map)\((.*)\)", re.DOTALL)
JITTED = re.compile(r"\b(?:jit|pjit|pmap|xmap)\(([^()/]+)\)")
COMPILED = {"jit", "pjit", "pmap", "xmap"}
# Scopes that JAX and TensorFlow open for calls; they are not part of the model. Haiku's ~ is a module's own method.
CALLS = {
    "ConstantFolding", "checkpoint", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call",
    "custom_vjp_call_jaxpr", "main", "pjit", "remat", "remat2", "rematted_computation", "shard_map", "xla_call",
    "xla_pmap", "~",
}  # fmt: skip
RECOMPUTED = "rematted_computation"
TENSORFLOW_GRADIENT = {"gradient_tape", "gradients"}
BRANCH = re.compile(r"branch_\d+_fun")
# XLA's name for several instructions that it combined into one, such as the all-reduce of all gradients.
COMBINED = re.compile(r"((?:[^/()]+|\w+\([^/()]*\))/)?\(([^:]+(?::[^:]+)+)\)", re.DOTALL)

KEY = re.compile(
    r"""
    \[ ' ((?:[^'\\]|\\.)*) ' \]     # ['up']
    | \[ " ((?:[^"\\]|\\.)*) " \]   # ["up"]
    | \[ ([^\[\]]*) \]              # [3]
    | \.? ([^.\[\]]+)               # params, .up
    """,
    re.VERBOSE | re.DOTALL,
)


def op_path(op_name: str) -> OpPath:
    """Parse an instruction's op_name or TensorFlow's name of an operation."""
    if combined := COMBINED.fullmatch(op_name):
        return _combined_path([op_path((combined[1] or "") + each) for each in combined[2].split(":")])
    pieces = _drop_repeats([_unwrap(piece) for piece in _split(op_name)])
    names = [name for _, name in pieces]
    training_pass, parts = Pass.OTHER, list[str]()
    for i, (wrappers, name) in enumerate(pieces):
        training_pass = _next_pass(training_pass, wrappers, name)
        # Every instruction's name starts with the program's name and JAX's name for its function.
        outermost = not parts and not COMPILED.isdisjoint(wrappers) and (i == 0 or name == "main")
        last = i == len(names) - 1  # the operation
        if name and not outermost and (last or not _is_call(names[i - 1] if i else "", name, names[i + 1])):
            parts.append(name)
    return OpPath(training_pass, _cap(parts))


def _combined_path(paths: list[OpPath]) -> OpPath:
    """Return the pass and the scopes that several combined instructions share."""
    training_pass = {path.training_pass for path in paths}
    levels = zip(*(path.parts for path in paths), strict=False)
    shared = takewhile(lambda level: len(set(level)) == 1, levels)
    scopes = (level[0] for level in shared)
    return OpPath(training_pass.pop() if len(training_pass) == 1 else Pass.OTHER, (*scopes, f"{len(paths)} combined"))


def jitted_function(op_name: str) -> str:
    """Return the innermost jitted function around the instruction; empty if the name does not contain one."""
    inner = [name for name in JITTED.findall(op_name) if name != "main"]
    return inner[-1] if inner else ""


def argument_path(path: str) -> tuple[str, ...]:
    """Return the keys of a pytree path, outermost first. An index is one key, `[3]`; module names are split at `/`."""
    parts: list[str] = []
    for quoted, double, index, name in KEY.findall(path):
        keys = [f"[{index}]"] if index else (quoted or double or name).split("/")
        parts += [key for key in keys if key not in ("", "~")]
    return _cap(parts)


def _split(op_name: str) -> Iterator[str]:
    """Split at each `/` outside of parentheses; after an unclosed parenthesis, at every `/`."""
    depth, pending = 0, list[str]()
    for piece in op_name.split("/"):
        depth += piece.count("(") - piece.count(")")
        pending.append(piece)
        if depth <= 0:
            yield from filter(None, ["/".join(pending)])
            depth, pending = 0, []
    yield from filter(None, pending)


def _unwrap(piece: str) -> Piece:
    """Split `transpose(jvp(layer))` into its wrappers, outermost first, and the name inside them."""
    wrappers: list[str] = []
    while piece.endswith(")") and len(wrappers) < MAX_WRAPPERS and (match := WRAPPER.fullmatch(piece)):
        wrappers.append(match[1])
        piece = match[2]
    return wrappers, piece


def _drop_repeats(pieces: list[Piece]) -> list[Piece]:
    """Drop the path that jax.checkpoint repeats in a backward pass: transpose(jvp(a))/b/jvp(a)/b/checkpoint/c."""
    names = [name for _, name in pieces]
    first = next((i for i, (wrappers, _) in enumerate(pieces) if "transpose" in wrappers), len(pieces))
    for again in range(first + 1, min(len(pieces), first + MAX_PARTS)):
        after = 2 * again - first
        if "jvp" in pieces[again][0] and names[first:again] == names[again:after]:
            return pieces[:again] + pieces[after:]
    return pieces


def _next_pass(so_far: Pass, wrappers: list[str], name: str) -> Pass:
    if name == RECOMPUTED or so_far is Pass.REMATERIALIZED:
        return Pass.REMATERIALIZED
    of_tensorflow = name in TENSORFLOW_GRADIENT and COMPILED.isdisjoint(wrappers)  # not a jitted function's name
    if "transpose" in wrappers or of_tensorflow or so_far is Pass.BACKWARD:
        return Pass.BACKWARD
    return Pass.FORWARD if "jvp" in wrappers else so_far


def _is_call(before: str, name: str, after: str) -> bool:
    """Return True for scopes of calls and loops. `body` and `cond` may be a user's names elsewhere."""
    return (
        name in CALLS
        or name in TENSORFLOW_GRADIENT
        or (name == "while" and after in ("body", "cond"))
        or (name in ("body", "cond") and before == "while")
        or (name == "cond" and BRANCH.fullmatch(after) is not None)
        or BRANCH.fullmatch(name) is not None
    )


def _cap(parts: list[str]) -> tuple[str, ...]:
    return (*parts[:MAX_PARTS], "...") if len(parts) > MAX_PARTS else tuple(parts)
