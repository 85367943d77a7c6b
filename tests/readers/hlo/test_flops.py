"""Floating-point operations of compiled programs, against XLA's cost analysis of the same programs."""

from __future__ import annotations

import pytest
from programs.stored import Stored

from tb_memplugin.errors import InputError
from tb_memplugin.readers.hlo.module.flops import product_flops

# compiled.cost_analysis()["flops"] with jax 0.12.0.1 and libtpu 0.0.52. It counts elementwise operations too, and each
# loop once. It has no figure for GPU.
WITHOUT_LOOPS = {
    "mlp_adam.v5e": 1174514171904,
    "mlp_momentum.v4": 426397138944,
    "gradients_only.v6e": 1838317568000,
}


@pytest.mark.parametrize("program", WITHOUT_LOOPS)
def test_products_are_nearly_all_of_the_operations_that_xla_counts(program: str) -> None:
    counted = product_flops(Stored(*program.split(".")).proto, program).flops.sum()
    assert 0.99 * WITHOUT_LOOPS[program] < counted <= WITHOUT_LOOPS[program]


def test_the_same_program_has_the_same_operations_on_tpu_and_gpu() -> None:
    """The TPU compiler makes convolutions of products, and does not write down how often a loop runs."""
    counted = [product_flops(Stored("lm_scanned", target).proto, target).flops.sum() for target in ("v5e", "h100")]
    assert counted[0] == pytest.approx(counted[1], rel=1e-9)


def test_loops_count_for_each_iteration() -> None:
    """12 layers of 1024, batch 8 x 512: six products per weight in training (two FLOPs), and the logits."""
    layers = 12 * 12 * 1024**2
    logits = 1024 * 32768
    attention = 12 * 3 * 2 * 2 * 8 * 16 * 512 * 512 * 64
    expected = 6 * 8 * 512 * (layers + logits) + attention
    found = product_flops(Stored("lm_scanned", "v5e").proto, "v5e").flops.sum()
    assert found == pytest.approx(expected, rel=0.01)


def test_damaged_bytes_are_refused() -> None:
    proto = Stored("mlp_adam", "v5e").proto
    for data in (b"", proto[:1000], proto[: len(proto) // 2]):
        with pytest.raises(InputError):
            product_flops(data, "damaged")
