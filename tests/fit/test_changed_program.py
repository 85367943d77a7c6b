"""Changed programs equal those of a function whose author has made the changes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from fit.steps import compile_here

from tb_memplugin.errors import InputError
from tb_memplugin.fit.compile_task import CompileTask
from tb_memplugin.fit.knobs import parse_changes
from tb_memplugin.fit.step.lowering import lower_step
from tb_memplugin.fit.step.rematerialization import watched_checkpoints
from tb_memplugin.fit.step.step_file import load_step
from tb_memplugin.model.fit import Candidate, Knob, Outcome

STEPS = str(Path(__file__).parent / "changed_steps.py")
PACKAGES = {
    "v5e:2x2": "libtpu", "v6e:2x2": "libtpu", "v5p:2x2x1": "libtpu", "h100:4": "jax_cuda12_plugin", "cpu:4": "jax",
}  # fmt: skip
DONATED: dict[str, Knob] = {"donated": True}
SPLIT: dict[str, Knob] = {"split": True}
DONATE, SHARD = "donate:params,momentum", "shard:data:params,momentum"
PAIRS = [
    ("by_shapes", (DONATE,), DONATED),
    ("by_jit", (DONATE,), DONATED),
    ("by_shapes", (SHARD,), SPLIT),
    ("by_jit", (SHARD,), SPLIT),
    ("by_jit", ("shard:data:params", "shard:data:momentum", DONATE), DONATED | SPLIT),
    ("lowered", (SHARD, DONATE), DONATED | SPLIT),
    ("with_unused", ("drop-unused",), {"keep": False}),
    ("scanned", ("remat:full",), {"remat": "full"}),
    ("scanned", ("remat:dots",), {"remat": "dots"}),
    ("named_scan", ("remat:names:hidden",), {"kept": "hidden"}),
    ("named_loop", ("remat:names:hidden",), {"kept": "hidden"}),
    ("named_loop", ("remat:dots",), {"kept": "dots"}),
    ("checkpointed_scan", ("remat:names:hidden",), {"kept": "hidden"}),
    ("checkpointed_scan", ("remat:dots",), {"kept": "dots"}),
    ("checkpointed_loop", ("remat:none",), {"kept": "none"}),
    ("checkpointed_loop", ("remat:offload:hidden,out",), {"kept": "host"}),
    ("with_microbatches", ("set:microbatches=2",), {"microbatches": 2}),
]
MORE = [
    ("explicit", ("donate:params",), DONATED),
    ("explicit", ("shard:data:params", "donate:params"), DONATED | SPLIT),
    ("wrapped", (DONATE,), DONATED),
    ("by_jit", ("shard:1:params,momentum",), SPLIT),  # an axis without a name, in files from before JAX 0.12
]


def on(target: str) -> Any:
    missing = importlib.util.find_spec(PACKAGES[target]) is None
    return pytest.param(target, marks=pytest.mark.skipif(missing, reason=f"{PACKAGES[target]} is not installed"))


def text(step: str, changes: tuple[str, ...], **knobs: Knob) -> str:
    """Return the StableHLO of a step, on this process's own devices."""
    import jax

    parsed = parse_changes(changes)
    name = f"{STEPS}:{step}"
    with watched_checkpoints(parsed.remat):
        lowered = lower_step(load_step(name), name, jax.devices("cpu")[:1], knobs | parsed.knobs, parsed)
    return str(lowered.as_text())


@pytest.mark.parametrize(("step", "changes", "by_hand"), [*PAIRS, *MORE])
def test_a_changed_function_is_lowered_as_if_its_author_had_changed_it(
    step: str, changes: tuple[str, ...], by_hand: dict[str, Knob]
) -> None:
    assert text(step, changes) == text(step, (), **by_hand)
    if not changes[0].startswith("shard"):  # a single device has nothing to split
        assert text(step, changes) != text(step, ())


def outcome_of(candidate: Candidate) -> Outcome:
    return compile_here(CompileTask(candidate)).outcome


@pytest.mark.parametrize("target", [on(target) for target in PACKAGES])
@pytest.mark.parametrize(("step", "changes", "by_hand"), [PAIRS[0], PAIRS[4], PAIRS[7]])
def test_a_changed_program_has_the_memory_of_the_one_changed_by_hand(
    target: str, step: str, changes: tuple[str, ...], by_hand: dict[str, Knob]
) -> None:
    name = f"{STEPS}:{step}"
    changed = outcome_of(Candidate(name, target, (), changes))
    made = outcome_of(Candidate(name, target, tuple(by_hand.items())))
    before = outcome_of(Candidate(name, target))
    assert not changed.error and not made.error
    assert (changed.reserved_bytes, changed.peak_bytes) == (made.reserved_bytes, made.peak_bytes)
    assert changed.reserved_bytes != before.reserved_bytes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("donate:nobody", "No such argument"),
        ("shard:model:params", "Nothing to split"),
        ("sideways:params", "No such change"),
        ("donate:", "No such change"),
        ("option:", "No value"),
        ("remat:full", "The step has nothing that this change applies to"),
        ("remat:none", "The step has nothing that this change applies to"),
        ("remat:names:hidden", "The step has no array of this name"),
        ("remat:names", "No such change"),
        ("remat:full:hidden", "No such change"),
    ],
)
def test_impossible_changes_get_a_message(change: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        text("by_shapes", (change,))


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("named_scan", (["hidden", "out"], False, True, ["full", "dots"])),
        ("checkpointed_loop", (["hidden", "out"], True, False, ["none", "full", "dots"])),
        ("named_loop", (["hidden", "out"], False, False, ["dots"])),
        ("by_shapes", ([], False, False, ["dots"])),
        ("explicit", ([], False, False, [])),
    ],
)
def test_names_and_checkpoints_of_a_step_are_found(
    step: str, expected: tuple[list[str], bool, bool, list[str]]
) -> None:
    import jax

    with watched_checkpoints(None) as found:
        lower_step(load_step(f"{STEPS}:{step}"), step, jax.devices("cpu")[:1], {}, parse_changes(()))
    names, has_policies, has_scans, kinds = expected
    assert ([*found.names], found.has_policies, found.has_scans) == (names, has_policies, has_scans)
    of_names = ["names:hidden", "names:out", "names:hidden,out"] if names else []
    assert found.policies_to_try(on_host=False) == [f"remat:{one}" for one in (*kinds, *of_names)]
    offloaded = ["remat:offload:hidden,out"] if names else []
    assert found.policies_to_try(on_host=True) == [*found.policies_to_try(on_host=False), *offloaded]


def test_names_with_commas_and_colons_are_whole() -> None:
    changes = parse_changes(("shard:data:p['a,b'],q[\"c:d\"],args[0]", "option:xla_x=False", "set:layers=2"))
    assert changes.sharded[0].arguments == ("p['a,b']", 'q["c:d"]', "args[0]")
    assert (changes.options, changes.knobs) == ({"xla_x": False}, {"layers": 2})
