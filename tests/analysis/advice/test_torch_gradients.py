"""Advice on retained gradients, against the same PyTorch training loop with its gradients cleared."""

from __future__ import annotations

import pytest
from support.advised import assert_close, given, kinds
from support.torch_training import Training, recorded

from tb_memplugin.analysis.advice import AdviceKind
from tb_memplugin.model.kinds import Role


@pytest.mark.parametrize("marks", [True, False])
@pytest.mark.parametrize("layers", [1, 4, 9])
def test_gradients_that_nothing_clears(layers: int, marks: bool) -> None:
    before = Training(6, clears=False, layers=layers, marks=marks)
    after = recorded(Training(6, clears=True, layers=layers, marks=marks))
    if layers == 1:  # the gradient is allocated again before the peak
        assert AdviceKind.LATE_FREE not in kinds(recorded(before))
        return
    advice = given(recorded(before), AdviceKind.LATE_FREE)
    assert advice.title == "Clear gradients before the forward pass"
    assert_close(advice, recorded(before), after)
    sizes = [before.allocator.truth[event] for event, role in before.truth.items() if role is Role.GRADIENT]
    assert advice.bytes == sum(sizes)
    assert len(advice.rows) == layers


@pytest.mark.parametrize("steps", [True, False])
def test_gradients_that_are_cleared(steps: bool) -> None:
    assert AdviceKind.LATE_FREE not in kinds(recorded(Training(12, clears=True, steps=steps)))


def test_the_last_step_is_followed_by_nothing() -> None:
    assert AdviceKind.LATE_FREE not in kinds(recorded(Training(1, clears=False)))
