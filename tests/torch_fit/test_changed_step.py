"""Changes that `fit --try` makes to a step of PyTorch, against the same changes made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from support.traced_memory import NOT_OF_OLD, live_bytes  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from tb_memplugin.cli import main  # noqa: E402
from tb_memplugin.errors import InputError  # noqa: E402
from tb_memplugin.model.fit import OfTorch  # noqa: E402
from tb_memplugin.torch_fit.process_group import ALONE, Rank  # noqa: E402
from tb_memplugin.torch_fit.tracing import trace_step  # noqa: E402

EIGHT = Rank(0, 8)
Run = Callable[[], Any]


class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, recompute: bool = False) -> None:
        super().__init__()
        self.blocks, self.recompute = torch.nn.ModuleList(Block() for _ in range(4)), recompute

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        return x


def step(by_hand: OfTorch | None = None, rows: int = 1024, batch_size: int = 8) -> tuple[Any, Any, Run]:
    model = Net(recompute=by_hand is OfTorch.CHECKPOINT).to("cuda")
    if by_hand is OfTorch.FSDP:
        from torch.distributed.fsdp import fully_shard

        torch.distributed.init_process_group()
        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), **({"fused": True} if by_hand is OfTorch.FUSED else {}))
    parts = 2 if by_hand is OfTorch.ACCUMULATE else 1
    batch = torch.randn(rows * batch_size // 8 // parts, 256, device="cuda")

    if by_hand is OfTorch.COMPILE:
        compiled = torch.compile(model)

    def loss() -> Any:
        if by_hand is OfTorch.COMPILE:
            return compiled(batch).square().mean()
        if by_hand is OfTorch.AUTOCAST:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                return model(batch).square().mean()
        if by_hand is OfTorch.OFFLOAD:
            with torch.autograd.graph.save_on_cpu():
                return model(batch).square().mean()
        return model(batch).square().mean()

    def train() -> None:
        for part in range(parts):
            value = loss()
            if part == 0:
                optimizer.zero_grad()  # late: the forward pass has the gradients of the step before
            value.backward()
        optimizer.step()
        if by_hand is OfTorch.CLEAR:
            optimizer.zero_grad()

    return model, optimizer, train


def peak_of(made: Callable[..., Any], rank: Rank, *changes: OfTorch) -> int:
    """Return the most bytes in the second step."""
    traced = trace_step(lambda: made, "train.py:step", {}, "h100", rank, changes)
    return max(live_bytes(traced.log)[slice(*traced.marks)])


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(one, marks=NOT_OF_OLD) if one in (OfTorch.FSDP, OfTorch.COMPILE) else one
        for one in OfTorch
        if one not in (OfTorch.EIGHT_BIT, OfTorch.CHUNKED_LOSS)
    ],
)
def test_a_change_saves_what_it_saves_by_hand(change: OfTorch) -> None:
    rank = EIGHT if change is OfTorch.FSDP else ALONE
    rows = 16 if change is OfTorch.FUSED else 1024  # so that the peak is in the update
    before = peak_of(partial(step, rows=rows), rank)
    after = peak_of(partial(step, rows=rows), rank, change)
    assert after == pytest.approx(peak_of(partial(step, change, rows), rank), rel=0.002)
    assert after < before or change is OfTorch.COMPILE  # which keeps more of this model


def test_an_optimizer_of_8_bits_keeps_two_bytes_for_each_parameter() -> None:
    count = 4 * (2 * 256 * 1024)
    saved = peak_of(step, ALONE) - peak_of(step, ALONE, OfTorch.EIGHT_BIT)
    assert saved >= 2 * count * (4 - 1 - 4 / 256) * 0.99


def test_a_loss_in_chunks_saves_what_it_saves_by_hand() -> None:
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    sizes = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "vocab_size": 20000}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4}

    def of_transformers(is_chunked: bool = False) -> tuple[Any, Any, Run]:
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **heads)).to("cuda")
        optimizer = torch.optim.AdamW(model.parameters())
        tokens = torch.randint(0, 20000, (8, 128), device="cuda")

        def of_chunk(rows: Any, targets: Any) -> Any:
            return torch.nn.functional.cross_entropy(model.lm_head(rows).float(), targets, reduction="sum")

        def train() -> None:
            if is_chunked:
                rows = model.model(tokens).last_hidden_state.flatten(0, 1)
                targets = torch.nn.functional.pad(tokens, (0, 1), value=-100)[:, 1:].flatten()
                pairs = zip(rows.chunk(8), targets.chunk(8), strict=True)
                torch.stack([checkpoint(of_chunk, *pair, use_reentrant=False) for pair in pairs]).sum().backward()
            else:
                model(input_ids=tokens, labels=tokens).loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        return model, optimizer, train

    before, after = peak_of(of_transformers, ALONE), peak_of(of_transformers, ALONE, OfTorch.CHUNKED_LOSS)
    assert after == pytest.approx(peak_of(partial(of_transformers, True), ALONE), rel=0.002)
    assert before - after > 1.5 * 8 * 128 * 20000 * 4  # more than the logits


FAILING = [
    (lambda: (torch.nn.Linear(8, 8).to("cuda"), lambda: None), OfTorch.FUSED, "one model and one optimizer"),
    (partial(step, OfTorch.FSDP), OfTorch.FSDP, "sharded or replicated already"),
    (step, OfTorch.CHUNKED_LOSS, "no head and loss of Transformers"),
    (lambda: step(), OfTorch.ACCUMULATE, "no knob for its batch"),
]


@pytest.mark.parametrize(("made", "change", "message"), FAILING)
def test_what_cannot_be_changed_is_an_error(made: Callable[..., Any], change: OfTorch, message: str) -> None:
    with pytest.raises(InputError, match=message):
        peak_of(made, EIGHT, change)


def test_a_model_without_repeated_blocks_is_an_error() -> None:
    def single() -> Any:
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()).to("cuda")
        return model, torch.optim.SGD(model.parameters()), lambda: model(torch.ones(8, device="cuda")).sum().backward()

    for change, message in ((OfTorch.CHECKPOINT, "no repeated blocks"), (OfTorch.EIGHT_BIT, "no 8-bit form")):
        with pytest.raises(InputError, match=message):
            peak_of(single, ALONE, change)


FILE = """
import torch


def step(batch=512):
    model = torch.nn.Sequential(*(
        torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)) for _ in range(4)
    )).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    inputs = torch.randn(batch, 256, device="cuda")

    def train():
        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, optimizer, train
"""


def test_fit_tries_the_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text(FILE)
    asked = ["fit", f"{tmp_path / 'train.py'}:step", "--on", "h100", "--set", "batch=65536", "--try"]
    assert main([*asked, "--json"]) == 0
    tried = {tuple(one["changes"]): one for one in json.loads(capsys.readouterr().out)["tried"] if one["compiled"]}
    assert {("torch:checkpoint",), ("torch:autocast",), ("torch:offload",)} <= tried.keys()
    assert ("torch:fsdp",) not in tried  # of one GPU
    assert tried["torch:checkpoint",]["saving_bytes"] > 0.4 * tried["torch:checkpoint",]["reserved_bytes"]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "Traced with changes" in shown and "Compute in bfloat16" in shown
