"""Changes of programs that are compiled for this machine's CPU, and the causes that are named."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from support.aot import KEEP_BARRIERS, array

from tb_memplugin.analysis.compare.causes import explain_change
from tb_memplugin.analysis.compare.facts import facts
from tb_memplugin.model.changes import ChangeCauseKind, MemoryFacts
from tb_memplugin.questions.compare.causes import cause_lines, cause_text
from tb_memplugin.readers.hlo import read_hlo


def compiled(function: Callable[..., Any], *arguments: Any, donate: tuple[int, ...] = ()) -> MemoryFacts:
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"xla_dump_to": folder, "xla_dump_hlo_as_proto": True, **KEEP_BARRIERS}
        jax.jit(function, donate_argnums=donate).lower(*arguments).compile(compiler_options=options)
        (dump,) = Path(folder).glob("*after_optimizations.hlo.pb")
        return facts(read_hlo(dump.read_bytes(), source="")[0])


def scores(a: Any, b: Any, barrier: bool = False) -> Any:
    with jax.named_scope("scores"):
        s = jnp.tanh(a[:, None] * b[None, :])
    if barrier:
        s = jax.lax.optimization_barrier(s)
    return jnp.sum(s * s, axis=1)


def test_a_split_fusion_is_named_by_what_is_stored_now() -> None:
    x = array(2048)
    one, two = compiled(scores, x, x), compiled(partial(scores, barrier=True), x, x)
    (cause,) = explain_change(one, two).causes
    assert cause.kind is ChangeCauseKind.FUSION_SPLIT
    assert cause.names[0] in {fused.fusion for fused in one.fused}
    assert cause_text(cause).endswith("was split: `scores/tanh` is stored now (`f32[2048,2048]`, +16.0 MiB)")
    (cause,) = explain_change(two, one).causes
    assert cause.kind is ChangeCauseKind.FUSED


def step(state: dict[str, Any], x: Any) -> Any:
    grads = jax.grad(lambda w: jnp.sum((x @ w) ** 2))(state["w"])
    mu = 0.9 * state["mu"] + grads
    return {"w": state["w"] - mu, "mu": mu}, mu.sum()


def test_donation_and_a_new_argument() -> None:
    w, x = array(256, 256), array(64, 256)
    donated = compiled(step, {"w": w, "mu": w}, x, donate=(0,))
    plain = compiled(step, {"w": w, "mu": w}, x)
    kinds = {cause.kind: cause for cause in explain_change(donated, plain).causes}
    cause = kinds[ChangeCauseKind.NOT_DONATED]
    assert (cause.names, cause.arrays, cause.bytes - cause.moved_bytes) == (("state",), 2, 512 << 10)
    assert cause.bytes == plain.peak_bytes - donated.peak_bytes
    with_ema = compiled(
        lambda state, x: (step(state, x), 0.9 * state["ema"] + state["w"]), {"w": w, "mu": w, "ema": w}, x
    )
    added = [cause for cause in explain_change(plain, with_ema).causes if cause.kind is ChangeCauseKind.ARGUMENT_ADDED]
    assert [(cause.names, cause.shape) for cause in added] == [(("state/ema",), "f32[256,256]")]


def attend(q: Any, chunks: int = 0, with_scores: bool = False) -> Any:
    """Sum up attention, with its scores at once or in chunks of queries."""

    def part(some: Any) -> Any:
        scores = jax.lax.optimization_barrier(jnp.exp(jnp.einsum("bqd,bkd->bqk", some, q)))
        return jnp.einsum("bqk,bkd->bqd", scores, q), scores

    if not chunks:
        out, scores = part(q)
        return (out, scores) if with_scores else out
    parts = q.reshape(len(q), chunks, -1, q.shape[-1]).swapaxes(0, 1)
    return jax.lax.map(lambda some: part(some)[0], parts)


def test_scores_of_attention_at_once_and_in_chunks() -> None:
    q = array(4, 512, 16)
    chunked, whole = compiled(partial(attend, chunks=8), q), compiled(attend, q)
    (cause,) = explain_change(chunked, whole).causes
    assert cause.kind is ChangeCauseKind.ATTENTION
    assert "are stored for all 512 positions at once now (`f32[4,512,512]`" in cause_text(cause)
    # What a chunk of them took is gone.
    assert 0.8 * (4 << 20) < cause.bytes < 4 << 20
    (back,) = explain_change(whole, chunked).causes
    assert back.kind is ChangeCauseKind.ATTENTION and back.bytes == -cause.bytes
    assert "are no longer stored at once" in cause_text(back)


def test_a_new_output_is_named_and_not_the_arrays_that_it_is_made_of() -> None:
    q = array(4, 512, 16)
    without, with_scores = compiled(attend, q), compiled(partial(attend, with_scores=True), q)
    found = explain_change(without, with_scores)
    assert ChangeCauseKind.ATTENTION not in {cause.kind for cause in found.causes}
    outputs = [cause for cause in found.causes if cause.kind is ChangeCauseKind.OUTPUT_ADDED]
    assert [(cause.arrays, cause.shape, cause.bytes) for cause in outputs] == [(1, "f32[4,512,512]", 4 << 20)]
    assert cause_text(outputs[0]).startswith("output `")
    grown = with_scores.peak_bytes - without.peak_bytes
    lines = list(cause_lines(found.causes, grown, lambda text: text))
    rest = grown - sum(cause.bytes for cause in found.causes)
    assert len(lines) == len(found.causes) + bool(rest)
