"""Advice about stored programs of the corpus, carried out: the same StableHLO as with the program's own knob."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

if not all(map(find_spec, ("jax", "flax", "equinox", "optax"))):
    pytest.skip("needs jax, flax, equinox and optax", allow_module_level=True)

import jax
from programs import corpus
from programs.stored import Stored

from tb_memplugin.analysis.advice import AdviceKind, advise
from tb_memplugin.fit.knobs import parse_changes
from tb_memplugin.fit.step.changed_program import lower_changed

PROGRAMS = [("equinox_lm", "v4"), ("nnx_lm", "v5e"), ("linen_lm", "h100"), ("mlp_momentum", "v4")]


def text(name: str, edits: tuple[str, ...] = (), **knobs: Any) -> str:
    case = corpus.PROGRAMS[name].build(jax.devices("cpu"), **knobs)
    return str(lower_changed(case.function, case.arguments, {}, parse_changes(edits)).as_text())


@pytest.mark.parametrize(("name", "target"), PROGRAMS)
def test_donating_what_advice_names_is_what_the_author_would_write(name: str, target: str) -> None:
    program = next(one for one in Stored(name, target).recordings if one.is_main_memory)
    piece = next(one for one in advise(program) if one.kind is AdviceKind.DONATION)
    changed = text(name, piece.edits)
    assert changed == text(name, donate=True)
    assert changed != text(name)
