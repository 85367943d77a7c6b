"""Levanter's trainer and its GPT-2, with another loss, as that of Levanter 1.2 needs an older JAX."""

import sys

import haliax as hax
import jax
from haliax import Axis
from levanter.data.dataset import ListAsyncDataset
from levanter.distributed import RayConfig
from levanter.models.gpt2 import Gpt2Config
from levanter.models.lm_model import LmExample
from levanter.optim import AdamConfig
from levanter.tracker import NoopConfig
from levanter.trainer import Trainer, TrainerConfig

Vocab = Axis("vocab", 8192)
config = Gpt2Config(seq_len=512, hidden_dim=512, num_layers=4, num_heads=8, gradient_checkpointing=False)
trainer_config = TrainerConfig(
    id="run",
    tracker=NoopConfig(),
    train_batch_size=int(sys.argv[1]),
    num_train_steps=100,
    require_accelerator=False,
    ray=RayConfig(auto_start_cluster=False),
)


def loss(model, example, *, key=None):
    logits = model(example.tokens, example.attn_mask, key=key)
    targets = hax.nn.one_hot(hax.roll(example.tokens, -1, "position"), Vocab)
    return hax.mean(hax.nn.cross_entropy_loss(logits, Vocab, targets))


if __name__ == "__main__":
    trainer_config.initialize()
    example = LmExample.causal(hax.zeros(config.Pos, dtype=int))
    dataset = ListAsyncDataset([example] * 4096, is_complete=True)
    optimizer = AdamConfig().build(trainer_config.num_train_steps)
    with Trainer(trainer_config, optimizer, loss) as trainer:
        key = jax.random.key(0)
        state = trainer.initial_state(key, model_init=lambda: config.build(Vocab, key=key))
        trainer.train(state, trainer.data_loader(dataset))
