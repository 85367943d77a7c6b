"""Operations and bytes of compiled programs, against XLA's cost analysis of the same programs."""

from __future__ import annotations

import pytest
from programs.stored import Stored

from tb_memplugin.errors import InputError
from tb_memplugin.model.program import Costs
from tb_memplugin.readers.hlo.module.costs import program_costs

# compiled.cost_analysis()["flops"] with jax 0.12.0.1 and libtpu 0.0.52. It counts elementwise operations too, and each
# loop once. It has no figure for GPU.
WITHOUT_LOOPS = {
    "mlp_adam.v5e": 1174514171904,
    "mlp_momentum.v4": 426397138944,
    "gradients_only.v6e": 1838317568000,
}
# compiled.cost_analysis()["bytes accessed"] with jax 0.10.2 and libtpu 0.0.52, which counts each loop once as well.
BYTES = {"mlp_adam.v5e": 4379801600, "gradients_only.v6e": 16687605760, "lm_scanned.v5e": 17342955520}


def flops(costs: Costs) -> float:
    """Return the operations of all runs of the instructions."""
    return float((costs.flops * costs.times).sum())


@pytest.mark.parametrize("program", BYTES)
def test_instructions_move_the_bytes_that_xla_counts(program: str) -> None:
    costs = program_costs(Stored(*program.split(".")).proto, program)
    assert float((costs.nbytes + costs.link_bytes).sum()) == pytest.approx(BYTES[program], rel=0.1)


def test_a_layer_of_a_scan_reads_its_own_weights_alone() -> None:
    """The loop's instructions have the weights of all 12 layers as operands, 600 MB; a layer's are 25 MB in bf16."""
    costs = program_costs(Stored("lm_scanned", "h100").proto, "lm_scanned")
    in_loop = costs.times == 12
    assert in_loop.any()
    assert float(costs.nbytes[in_loop].sum()) < 12e9


@pytest.mark.parametrize("program", WITHOUT_LOOPS)
def test_products_are_nearly_all_of_the_operations_that_xla_counts(program: str) -> None:
    counted = program_costs(Stored(*program.split(".")).proto, program).flops.sum()
    assert 0.99 * WITHOUT_LOOPS[program] < counted <= WITHOUT_LOOPS[program]


def test_the_same_program_has_the_same_operations_on_tpu_and_gpu() -> None:
    """The TPU compiler makes convolutions of products, and does not write down how often a loop runs."""
    counted = [flops(program_costs(Stored("lm_scanned", target).proto, target)) for target in ("v5e", "h100")]
    assert counted[0] == pytest.approx(counted[1], rel=1e-9)


def test_loops_count_for_each_iteration() -> None:
    """12 layers of 1024, batch 8 x 512: six products per weight in training (two FLOPs), and the logits."""
    layers = 12 * 12 * 1024**2
    logits = 1024 * 32768
    attention = 12 * 3 * 2 * 2 * 8 * 16 * 512 * 512 * 64
    expected = 6 * 8 * 512 * (layers + logits) + attention
    found = flops(program_costs(Stored("lm_scanned", "v5e").proto, "v5e"))
    assert found == pytest.approx(expected, rel=0.01)


def test_damaged_bytes_are_refused() -> None:
    proto = Stored("mlp_adam", "v5e").proto
    for data in (b"", proto[:1000], proto[: len(proto) // 2]):
        with pytest.raises(InputError):
            program_costs(data, "damaged")
