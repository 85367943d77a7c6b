"""A language model of Transformers: training, or generation with its key-value cache. No weights are needed.

    tb-memplugin fit examples/torch_language_model.py:step --on h100 --set config=config.json --vary batch=1:64
    tb-memplugin fit examples/torch_language_model.py:generate --on a100 --set config=config.json --vary batch=1:256

`config` is the file of that name in a model's folder; without it, the model is a Llama of 1.2 billion parameters. The
needs of a batch are the same for all weights. Run it with `--on h100:8` to trace one process of FSDP.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

LLAMA = {
    "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": True,
}  # fmt: skip


def model_of(config: str, layers: int = 0) -> Any:
    """Return the model in bfloat16. `layers`: use only so many of them, to try something quickly."""
    described = json.loads(Path(config).read_text()) if config else dict(LLAMA)
    if layers:
        described["num_hidden_layers"] = layers
    made = AutoConfig.for_model(described.pop("model_type"), **described)
    with torch.device("cuda"):
        return AutoModelForCausalLM.from_config(made, dtype=torch.bfloat16)


def step(
    batch: int = 4,  # sequences on each GPU
    length: int = 2048,  # tokens of each
    config: str = "",
    layers: int = 0,
    checkpoint: bool = False,
    compile: bool = False,
    fused: bool = True,
) -> tuple[Any, Any, Any]:
    """Return a training step."""
    model = model_of(config, layers)
    if checkpoint:
        model.gradient_checkpointing_enable()
    if compile:
        model.compile()
    if torch.cuda.device_count() > 1:
        torch.distributed.init_process_group("nccl")
        for block in model.model.layers:
            torch.distributed.fsdp.fully_shard(block)
        torch.distributed.fsdp.fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused)
    tokens = torch.randint(0, model.config.vocab_size, (batch, length), device="cuda")

    def train() -> None:
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, optimizer, train


def generate(batch: int = 4, prompt: int = 1024, new: int = 32, config: str = "", layers: int = 0) -> None:
    """Generate `new` tokens after prompts of so many. The cache grows with each token."""
    model = model_of(config, layers).eval()
    tokens = torch.randint(0, model.config.vocab_size, (batch, prompt), device="cuda")
    options = {"max_new_tokens": new, "do_sample": False, "pad_token_id": 0}
    with torch.inference_mode():
        model.generate(tokens, attention_mask=torch.ones_like(tokens), **options)
