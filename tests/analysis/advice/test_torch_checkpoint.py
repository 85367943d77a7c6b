"""Advice on checkpointing, against the same PyTorch training loop with every block checkpointed."""

from __future__ import annotations

import pytest
from support.advised import assert_close, given, kinds
from support.torch_training import Training, recorded

from tb_memplugin.analysis.advice import AdviceKind


@pytest.mark.parametrize("iterations", [1, 4])
@pytest.mark.parametrize("clears", [True, False])
@pytest.mark.parametrize("layers", [3, 8])
def test_blocks_that_are_called_in_turn(layers: int, clears: bool, iterations: int) -> None:
    before = recorded(Training(iterations, clears=clears, layers=layers, blocks=True, batch=3))
    after = recorded(Training(iterations, clears=clears, layers=layers, blocks=True, batch=3, checkpoint=True))
    advice = given(before, AdviceKind.REMATERIALIZATION)
    assert advice.title == "Checkpoint the calls at forward (model.py:20)"
    assert_close(advice, before, after)
    assert len(advice.rows) == 3 * layers
    assert AdviceKind.REMATERIALIZATION not in kinds(after)


def test_layers_that_keep_their_result_alone() -> None:
    assert AdviceKind.REMATERIALIZATION not in kinds(recorded(Training(3, clears=True, layers=8)))


def test_a_single_block_would_be_made_again_at_once() -> None:
    assert AdviceKind.REMATERIALIZATION not in kinds(recorded(Training(3, clears=True, layers=1, blocks=True)))
