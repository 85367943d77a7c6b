"""Advice on gradient accumulation, against the same PyTorch training loop with its batch in two parts."""

from __future__ import annotations

import pytest
from support.advised import assert_close, given, kinds
from support.torch_training import Training, read_snapshot, recorded

from tb_memplugin.analysis.advice import AdviceKind


@pytest.mark.parametrize("iterations", [1, 5])
@pytest.mark.parametrize("clears", [True, False])
@pytest.mark.parametrize("layers", [4, 12])
def test_half_of_the_batch_at_a_time(layers: int, clears: bool, iterations: int) -> None:
    before = recorded(Training(iterations, clears=clears, layers=layers, batch=6))
    after = recorded(Training(iterations, clears=clears, layers=layers, batch=6, parts=2))
    advice = given(before, AdviceKind.MICROBATCHING)
    assert len(advice.rows) == layers
    assert_close(advice, before, after)


def test_without_a_backward_pass_nothing_waits_for_one() -> None:
    training = Training(2, clears=True)
    snapshot = training.snapshot()
    for entry in snapshot["device_traces"][0]:
        entry["frames"] = [frame for frame in entry["frames"] if "autograd" not in frame["name"]]
    assert AdviceKind.MICROBATCHING not in kinds(read_snapshot(snapshot))
