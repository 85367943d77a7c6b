"""The examples of PyTorch are traced, and their knobs do what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs torch")

from support.traced_memory import OLD

from tb_memplugin.cli import main
from tb_memplugin.model.accelerators import GPUS
from tb_memplugin.targets import targets_to_try

EXAMPLES = Path(__file__).parents[2] / "examples"


def reserved(capsys: pytest.CaptureFixture[str], step: str, **knobs: Any) -> int:
    options = [f"--set={name}={value}" for name, value in knobs.items()]
    code = main(["fit", f"{EXAMPLES / step}", "--on", "h100", "--json", "--no-cache", *options])
    (found,) = json.loads(capsys.readouterr().out)["candidates"]
    assert code == 0, found
    return int(found["reserved_bytes"])


def test_a_language_model_needs_less_with_checkpointing_and_for_generation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    config = tmp_path / "config.json"
    heads = {"num_attention_heads": 8, "num_key_value_heads": 4}
    sizes = {"hidden_size": 512, "intermediate_size": 1024, "vocab_size": 1000, **heads}
    config.write_text(json.dumps({"model_type": "qwen3", "num_hidden_layers": 8, **sizes}))
    small: dict[str, Any] = {"config": str(config), "layers": 4, "length": 512, "batch": 16}
    plain, checkpointed, compiled = (
        reserved(capsys, "torch_language_model.py:step", **{knob: "true"}, **small)
        for knob in ("fused", "checkpoint", "compile")
    )
    del small["length"]
    generated = reserved(capsys, "torch_language_model.py:generate", prompt=64, new=4, **small)
    assert generated < checkpointed < plain
    assert compiled < plain or OLD  # of which compiled code is traced as eager code


@pytest.mark.parametrize("name", ["resnet18", "swin_t"])
def test_a_model_of_torchvision_is_told_by_its_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torchvision", reason="needs torchvision")
    sizes = [reserved(capsys, "torch_vision.py:step", name=name, size=64, batch=batch) for batch in (32, 64)]
    assert sizes[0] < sizes[1] < 2 * sizes[0]


def test_a_module_of_lightning_is_trained(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("lightning", reason="needs lightning")
    assert reserved(capsys, "torch_lightning.py:step", batch=8, width=256) > 64 << 20


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("torch_*.py")), ids=lambda path: path.stem)
def test_every_example_says_how_to_run_it(path: Path) -> None:
    commands = re.findall(r"tb-memplugin fit (\S+):\w+ --on (\S+) ", path.read_text().split('"""')[1])
    assert commands and {file for file, _ in commands} == {f"examples/{path.name}"}
    assert all(targets_to_try(target)[0].chip in GPUS for _, target in commands)
