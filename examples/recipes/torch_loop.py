"""Watch the GPU memory of a training loop with PyTorch."""

from __future__ import annotations

import sys

import torch

from tb_memplugin import capture


def main(logdir: str, steps: int = 20) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters())

    with capture.watch(logdir) as watched:
        for number in range(steps):
            watched.step(number)
            batch = torch.randn(32, 64, device=device)
            loss = torch.nn.functional.mse_loss(model(batch), batch.sum(1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main(sys.argv[1])
