"""Programs of the corpus compiled again, where there is a compiler for TPU: libtpu needs no TPU for it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

jax = pytest.importorskip("jax", minversion="0.12")
if not find_spec("libtpu"):
    pytest.skip("needs libtpu", allow_module_level=True)

from programs.compile import compile_case  # noqa: E402
from programs.corpus import CORPUS  # noqa: E402
from programs.store import report  # noqa: E402
from programs.stored import stored_programs  # noqa: E402

from tb_memplugin.readers.hlo import read_hlo  # noqa: E402


@pytest.mark.parametrize(
    ("name", "target"), [("mlp_momentum", "v4"), ("fused_mlp", "v5e"), ("ring_matmul", "v5e"), ("many_steps", "v5p")]
)
def test_a_program_compiled_now_reserves_what_xla_reports_now(name: str, target: str, tmp_path: Path) -> None:
    compiled = compile_case(name, target, tmp_path)
    reserved = {
        str(r.program.memory_space): int(r.regions.size.sum())
        for r in read_hlo(compiled.proto, source=name)
        if r.program is not None
    }
    assert reserved == {color: size for color, size in report(compiled)["reserved"].items() if size}


def test_every_program_is_stored_for_each_of_its_targets() -> None:
    assert {str(stored) for stored in stored_programs()} == {
        f"{name}.{target}" for name, builder in CORPUS.items() for target in builder.targets
    }
