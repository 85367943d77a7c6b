"""Steps traced without a GPU against what the caching allocator of an H100 was asked for in the same steps."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from support.traced_memory import live_bytes  # noqa: E402

from tb_memplugin.torch_fit.tracing import trace  # noqa: E402

FOLDER = Path(__file__).parents[1] / "data" / "h100"
MEASURED = {step["name"]: step for step in json.loads((FOLDER / "torch_steps.json").read_text())["steps"]}
MIB = 2**20


class Encoder(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, width: int = 512, layers: int = 6, words: int = 20000) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(words, width)
        layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, layers)
        self.head = torch.nn.Linear(width, words)

    def forward(self, tokens: Any) -> Any:
        return self.head(self.layers(self.embedding(tokens)))


def encoder(precision: Any = None) -> tuple[Any, Callable[[], Any]]:
    model = Encoder().to("cuda").train()
    tokens = torch.randint(0, 20000, (32, 256), device="cuda")

    def loss() -> Any:
        with torch.autocast("cuda", dtype=precision) if precision else contextlib.nullcontext():
            return torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())

    return model, loss


def perceptron(offload: bool = False) -> tuple[Any, Callable[[], Any]]:
    layers = [layer for _ in range(6) for layer in (torch.nn.Linear(2048, 2048), torch.nn.GELU())]
    model = torch.nn.Sequential(*layers).to("cuda")
    batch = torch.randn(16384, 2048, device="cuda")

    def loss() -> Any:
        with torch.autograd.graph.save_on_cpu() if offload else contextlib.nullcontext():
            return model(batch).square().mean()

    return model, loss


STEPS: dict[str, Callable[[], tuple[Any, Callable[[], Any]]]] = {
    "encoder_b32": encoder,
    "encoder_b32_bf16": lambda: encoder(torch.bfloat16),
    "mlp_b16384": perceptron,
    "mlp_b16384_offload": lambda: perceptron(offload=True),
}


@pytest.mark.parametrize("name", STEPS)
def test_two_steps_ask_for_what_they_asked_for_on_an_h100(name: str) -> None:
    with trace() as traced:
        model, loss = STEPS[name]()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            loss().backward()
            optimizer.step()
            optimizer.zero_grad()
            traced.mark()
    segments = traced.snapshot()["segments"]
    assert sum(one["total_size"] for one in segments) == pytest.approx(MEASURED[name]["reserved2"], rel=0.02)
    live, first = live_bytes(traced.log), traced.marks[0]
    for number, peak in ((1, max(live[:first])), (2, max(live[first - 1 : traced.marks[1]]))):
        assert peak == pytest.approx(MEASURED[name][f"requested{number}"], abs=4 * MIB)
