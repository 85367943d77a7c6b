from __future__ import annotations

import pytest

from tb_memplugin.analysis.advice.support.arguments import _common_node


@pytest.mark.parametrize(
    ("paths", "above"),
    [
        (["state[1]['mu']['w']", "state[1]['nu']['w']"], "state[1]"),
        (["state.opt_state[0].mu['w']", "state.opt_state[0].nu['w']"], "state.opt_state[0]"),
        (["state.opt_state[10].mu", "state.opt_state[1].mu"], "state.opt_state"),
        (["state.step", "state.params['a']"], "state"),
        (["state['params_a']", "state['params_b']"], "state"),
        (["state.m"], "state.m"),
        (["state.m", "state.m.x"], "state.m"),
        (["state['a.b[c']['x']", "state['a.b[c']['y']"], "state['a.b[c']"),
        (["", "state.m"], ""),
    ],
)
def test_the_node_above(paths: list[str], above: str) -> None:
    assert _common_node(paths) == above
