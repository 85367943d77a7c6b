from __future__ import annotations

from typing import Any

import jax
import pytest
from support.advised import MIB, array, assert_close, compiled, given, kinds

from tb_memplugin.analysis.advice import AdviceKind


def pick(state: Any, x: Any) -> Any:
    return x @ state["read"]


def arguments(*names: str) -> Any:
    return {name: array(1024, 1024) for name in names}, array(64, 1024)


def test_an_argument_that_nobody_reads() -> None:
    before = compiled(pick, *arguments("read", "kept", "old"), keep_unused=True)
    advice = given(before, AdviceKind.UNUSED)
    assert advice.title == "Remove unused arguments: state"
    assert advice.bytes == 8 * MIB
    assert {before.allocations.op_name[row] for row in advice.rows.tolist()} == {"state['kept']", "state['old']"}
    assert_close(advice, before, compiled(pick, *arguments("read"), keep_unused=True))


@pytest.mark.parametrize("jitted", [{}, {"keep_unused": True}])
def test_what_is_read_or_left_out_already(jitted: dict[str, Any]) -> None:
    names = ("read",) if jitted else ("read", "kept")
    assert AdviceKind.UNUSED not in kinds(compiled(pick, *arguments(*names), **jitted))


def test_a_cache_that_a_loop_carries_is_read() -> None:
    def loop(cache: Any, x: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, c: (c[0].at[0].set(c[1][0]), c[1] * 2), (cache, x))[0]

    assert AdviceKind.UNUSED not in kinds(compiled(loop, array(1024, 1024), array(4, 1024), donate_argnums=0))
