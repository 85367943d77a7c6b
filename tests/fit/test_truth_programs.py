"""Figures of programs whose compilation ends once the memory is assigned, against whole compilations."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from fit.steps import compile_here
from programs.stored import Stored

from tb_memplugin.analysis.usage.live_bytes import reserved_bytes
from tb_memplugin.fit.compile_task import CompileTask
from tb_memplugin.fit.compiling.program_memory import code_bytes
from tb_memplugin.model.accelerators import GPUS, TPUS
from tb_memplugin.model.fit import Candidate, Knob, Outcome
from tb_memplugin.targets import slices

# compiled.memory_analysis() of whole compilations with jax 0.12.0.1 and libtpu 0.0.52, which took 7 to 330 s each:
# peak_memory_in_bytes; arguments + outputs - aliases + temporaries; generated_code_size_in_bytes.
MEMORY_ANALYSIS = {
    "accumulated.v5e": (1057374720, 1058902016, 11316224),
    "adversarial.v5e": (1241830400, 1295075840, 15355392),
    "decode_step.v5e": (4603341824, 4532326400, 8433664),
    "evaluate.v5e": (1103243264, 1146309120, 5762560),
    "flash_attention.tpu7x": (1233126944, 1234534944, 7555072),
    "fused_mlp.v5e": (335609856, 335609856, 2329600),
    "gradients_only.v6e": (2291758688, 2340598368, 30754816),
    "llama_fsdp.v5e": (2727093760, 2782635520, 34499072),
    "llama_fsdp_tensor_parallel.h100": (3287101824, 3292768512, 0),
    "lm_scanned.h100": (13509603640, 13509631312, 0),
    "lm_scanned.v5e": (11869447168, 11871520256, 10994176),
    "lm_unrolled.v5e": (4985800192, 4995102720, 34816000),
    "lstm.v5p": (7603653184, 7687610944, 8507392),
    "mlp_adam.h100": (1543799108, 1543804500, 0),
    "mlp_adam.v5e": (1208259584, 1210517504, 9093120),
    "mlp_momentum.v4": (843290624, 907559936, 10025472),
    "nnx_lm.v5e": (2997041664, 3008207872, 26637824),
    "resnet.h100": (1549316032, 1549362356, 0),
}
# Rounded otherwise: to 512 bytes, or to the alignment of each buffer.
ROUNDING = {"v4": 16384, "v5e": 20480, "v5p": 16384, "v6e": 16384, "tpu7x": 16384, "h100": 64}

STEP = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

def step(devices, batch=8, width=4096):
    mesh = Mesh(np.array(devices), ("data",))
    x = jax.ShapeDtypeStruct((batch, width), jnp.float32, sharding=NamedSharding(mesh, P("data")))
    w = jax.ShapeDtypeStruct((width, width), jnp.float32, sharding=NamedSharding(mesh, P()))
    return jax.jit(lambda x, w: jnp.tanh(x @ w)), (x, w)
"""


@pytest.mark.parametrize("program", MEMORY_ANALYSIS)
def test_a_dump_of_a_compilation_that_was_ended_has_the_figures_of_a_whole_one(program: str) -> None:
    """`peak_memory_in_bytes` is of all memories together, and the same to the byte. JAX rounds the others."""
    name, target = program.split(".")
    recording = next(recording for recording in Stored(name, target).recordings if recording.is_main_memory)
    peak, reserved, code = MEMORY_ANALYSIS[program]
    assert recording.reported_peak == peak
    assert abs(reserved_bytes(recording) - reserved) <= ROUNDING[target]
    assert code <= code_bytes(recording)


def compiled(folder: Path, target: str, to_end: bool = False, **knobs: Knob) -> Outcome:
    (folder / "step.py").write_text(STEP)
    candidate = Candidate(f"{folder / 'step.py'}:step", target, tuple(knobs.items()))
    return compile_here(CompileTask(candidate, uses_cache=False, to_end=to_end)).outcome


def needing(module: str, chips: list[str], size: int) -> list[object]:
    mark = pytest.mark.skipif(not find_spec(module), reason=f"needs {module}")
    return [pytest.param(str(slices(chip)[size]), marks=mark) for chip in chips]


@pytest.mark.parametrize("target", [*needing("libtpu", [*TPUS], 0), *needing("jax_cuda12_plugin", [*GPUS], 3), "cpu:8"])
def test_on_every_target_a_whole_compilation_gives_the_same_figures(target: str, tmp_path: Path) -> None:
    early, whole = (compiled(tmp_path, target, to_end, batch=4096) for to_end in (False, True))
    assert not early.error and not whole.error
    assert (early.reserved_bytes, early.peak_bytes, early.roles) == (
        whole.reserved_bytes, whole.peak_bytes, whole.roles,
    )  # fmt: skip
    assert early.fits and whole.fits


@pytest.mark.skipif(not find_spec("libtpu"), reason="needs libtpu")
@pytest.mark.parametrize("target", ["v5e:1x1", "v6e:2x2"])
def test_the_largest_batch_compiles_to_the_end_and_the_next_does_not(target: str, tmp_path: Path) -> None:
    """Rows in and out, of 16 KiB each per device, beside the weights; in steps of 8 MiB."""
    devices = int(target[4]) * int(target[6])
    step = 256 * devices
    one, two = (compiled(tmp_path, target, batch=step * n).reserved_bytes or 0 for n in (8, 16))
    capacity = compiled(tmp_path, target).capacity_bytes or 0
    largest = 8 + int((capacity - one) // ((two - one) / 8))
    outcomes = [compiled(tmp_path, target, to_end=True, batch=step * (largest + n)) for n in (0, 1)]
    if outcomes[0].refused:  # its code is in the memory too
        assert any(
            "the compiler may refuse it" in text for text in compiled(tmp_path, target, batch=step * largest).caveats
        )
        outcomes = [compiled(tmp_path, target, to_end=True, batch=step * (largest - 1)), outcomes[0]]
    assert [one.fits for one in outcomes] == [True, False]
    assert outcomes[1].refused.startswith("RESOURCE_EXHAUSTED: E1000")
