"""Model paths: the keys of an argument's pytree path, or the pass, scopes and operation of an op_name.

`params['layer_3']['mlp']['up']` and `jit(step)/transpose(jvp(layer_3))/mlp/dot_general` both contain `layer_3`, `mlp`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import takewhile
from typing import NamedTuple

# No user's program nests scopes or transformations deeper than this. Deeper parts are dropped.
MAX_PARTS = 64
MAX_WRAPPERS = 16
# A parser remembers the scopes of op_names with at most so many characters, and at most so many scopes.
MAX_REMEMBERED = 512
MAX_KNOWN = 1 << 16


class Pass(StrEnum):
    """A pass of a training step."""

    FORWARD = "forward"
    BACKWARD = "backward"
    REMATERIALIZED = "rematerialized"
    OTHER = "update and other"


# One part of an op_name: its wrappers, outermost first, and the name inside them.
Piece = tuple[Sequence[str], str]


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
OF_JAX = {"eval_jaxpr", "dynamic_update_index_in_dim", "dynamic_index_in_dim"}  # JAX's scopes inside of scans
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
    if ":" in op_name and (combined := COMBINED.fullmatch(op_name)):
        return _combined_path([op_path((combined[1] or "") + each) for each in combined[2].split(":")])
    pieces = _drop_repeats([_unwrap(piece) for piece in _split(op_name)[0]])
    return _scopes(pieces[:-1]).path(pieces[-1]) if pieces else OpPath(Pass.OTHER, ())


def op_paths(op_names: Iterable[str]) -> list[OpPath]:
    """Parse many op_names. Scopes that several operations have in common are parsed once."""
    parser = _OpNameParser()
    return [parser.path(op_name) for op_name in op_names]


class _EnclosingScopes(NamedTuple):
    """The scopes around an operation. The operation's name decides whether the innermost one is the scope of a call."""

    training_pass: Pass = Pass.OTHER
    parts: tuple[str, ...] = ()  # without the innermost scope
    innermost: str = ""  # empty without one
    previous: tuple[str, str] = ("", "")  # the last two names
    outermost: bool = True  # there is no scope
    transposed: bool = False

    def inside(self, piece: Piece) -> _EnclosingScopes:
        """Return the scopes with another one inside of them."""
        wrappers, name = piece
        parts = self._with_innermost(name)
        return _EnclosingScopes(
            _next_pass(self.training_pass, wrappers, name),
            parts,
            "" if self._is_program(parts, piece) else name,
            (self.previous[1], name),
            False,
            self.transposed or "transpose" in wrappers,
        )

    def path(self, operation: Piece) -> OpPath:
        wrappers, name = operation
        parts = self._with_innermost(name)
        if name and not self._is_program(parts, operation):
            parts = (*parts, name)
        return OpPath(_next_pass(self.training_pass, wrappers, name), _cap(parts))

    def _with_innermost(self, after: str) -> tuple[str, ...]:
        if not self.innermost or _is_call(self.previous[0], self.innermost, after) or len(self.parts) > MAX_PARTS:
            return self.parts
        return (*self.parts, self.innermost)

    def _is_program(self, parts: Sequence[str], piece: Piece) -> bool:
        """Return True for the names with which every op_name starts: the program's, and JAX's name for its function."""
        wrappers, name = piece
        return not parts and not COMPILED.isdisjoint(wrappers) and (self.outermost or name == "main")


class _OpNameParser:
    """A parser of op_names that parses each scope once."""

    def __init__(self) -> None:
        self._around: dict[str, _EnclosingScopes | None] = {}
        self._pieces: dict[str, Piece] = {}

    def path(self, op_name: str) -> OpPath:
        if len(op_name) > MAX_REMEMBERED or op_name.count("/") > MAX_PARTS:
            return op_path(op_name)
        if not 0 < len(self._around) <= MAX_KNOWN:
            self._around, self._pieces = {"": _EnclosingScopes()}, {}
        around, _, operation = op_name.rpartition("/")
        scopes = self._scopes(around)
        if scopes is None or not operation or "(" in operation or ")" in operation:
            return op_path(op_name)
        return scopes.path(((), operation))

    def _scopes(self, around: str) -> _EnclosingScopes | None:
        """Return the scopes of an op_name without its operation; None if the operation decides how they are parsed."""
        missing, at = list[str](), around
        while at not in self._around:
            missing.append(at)
            at = at.rpartition("/")[0]
        for each in reversed(missing):
            self._around[each] = self._extended(each)
        return self._around[around]

    def _extended(self, around: str) -> _EnclosingScopes | None:
        outer, _, text = around.rpartition("/")
        scopes = self._around[outer]
        if not text:
            return scopes
        if text not in self._pieces:
            self._pieces[text] = _unwrap(text)
        piece = self._pieces[text]
        if scopes is None or text.count("(") != text.count(")") or (scopes.transposed and "jvp" in piece[0]):
            return _parse_scopes(around)
        return scopes.inside(piece)


def _parse_scopes(around: str) -> _EnclosingScopes | None:
    """Return the scopes of an op_name without its operation; None if the operation decides how they are parsed.

    The operation decides after an unclosed parenthesis, or if it may end a path that jax.checkpoint repeats.
    """
    texts, closed = _split(around)
    pieces = [_unwrap(text) for text in texts]
    first = _first_transposed(pieces)
    end = (len(pieces) + 1 + first) // 2  # a path that begins later is longer than the rest of the name
    if not closed or any("jvp" in wrappers for wrappers, _ in pieces[max(end, first + 1) :]):
        return None
    return _scopes(_drop_repeats(pieces))


def _scopes(pieces: Iterable[Piece]) -> _EnclosingScopes:
    scopes = _EnclosingScopes()
    for piece in pieces:
        scopes = scopes.inside(piece)
    return scopes


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


def _split(op_name: str) -> tuple[list[str], bool]:
    """Split at each `/` outside of parentheses, and after an unclosed parenthesis at every `/`. False if one is."""
    depth, pending, found = 0, list[str](), list[str]()
    for piece in op_name.split("/"):
        depth += piece.count("(") - piece.count(")")
        pending.append(piece)
        if depth <= 0:
            found.append("/".join(pending))
            depth, pending = 0, []
    return [piece for piece in found + pending if piece], not pending


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
    first = _first_transposed(pieces)
    for again in range(first + 1, min(len(pieces), first + MAX_PARTS)):
        after = 2 * again - first
        if "jvp" in pieces[again][0] and names[first:again] == names[again:after]:
            return pieces[:again] + pieces[after:]
    return pieces


def _first_transposed(pieces: Sequence[Piece]) -> int:
    return next((i for i, (wrappers, _) in enumerate(pieces) if "transpose" in wrappers), len(pieces))


def _next_pass(so_far: Pass, wrappers: Sequence[str], name: str) -> Pass:
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


def _cap(parts: Sequence[str]) -> tuple[str, ...]:
    return (*parts[:MAX_PARTS], "...") if len(parts) > MAX_PARTS else tuple(parts)
