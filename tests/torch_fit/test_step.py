"""Steps of PyTorch in a user's file, traced by `fit`, and their mistakes."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs torch")

from support.traced_memory import NOT_OF_OLD

from tb_memplugin import capture
from tb_memplugin.analysis.ownership.torch_roles import torch_roles
from tb_memplugin.analysis.usage.live_bytes import usage
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.cli import main
from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import Role
from tb_memplugin.readers import open_file

MODEL = """
import torch

device = torch.device("cuda")
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(8))).to(device)
optimizer = torch.optim.Adam(model.parameters())


def step(batch=64):
    inputs = torch.randn(batch, 1024, device=device)

    def train():
"""
TRAINING = """        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, optimizer, train
"""
PARAMETERS = 8 * (1024 * 1024 + 1024) * 4  # bytes


def fit(folder: Path, code: str, *options: str) -> int:
    (folder / "train.py").write_text(MODEL + code)
    return main(["fit", f"{folder / 'train.py'}:step", "--on", "h100", "--to", str(folder / "logdir"), *options])


def test_the_largest_batch_is_found_and_each_candidate_can_be_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fit(tmp_path, TRAINING, "--vary", "batch=64,128", "--json") == 0
    large, small = json.loads(capsys.readouterr().out)["candidates"]
    assert small["knobs"] == {"batch": 64} and small["fits"]
    assert large["knobs"] == {"batch": 128} and large["peak_bytes"] > small["peak_bytes"]
    assert any("cuBLAS" in text for text in small["caveats"])
    found = {recording.run: recording for recording in listing_of_path(str(tmp_path / "logdir")).recordings}
    assert found.keys() == {small["run"], large["run"]}
    assert {one.capacity for one in found.values()} == {small["limit_bytes"]}
    assert [caveat.text for one in found.values() for caveat in one.caveats if "without a GPU" in caveat.text]
    roles = json.loads((tmp_path / "logdir" / small["run"] / "fit.json").read_text())["roles_bytes"]
    assert roles["parameter"] == pytest.approx(PARAMETERS, rel=0.01)
    assert roles["optimizer_state"] == pytest.approx(2 * PARAMETERS, rel=0.01)


def test_parameters_that_are_made_on_the_gpu_are_told_from_other_tensors() -> None:
    import torch

    def run() -> None:
        with torch.device("cuda"):
            model = torch.nn.Sequential(
                torch.nn.Embedding(1000, 256), torch.nn.Linear(256, 64), torch.nn.BatchNorm1d(64)
            )
            own = torch.nn.Parameter(torch.randn(64))
        optimizer = torch.optim.Adam([*model.parameters(), own])
        (model(torch.zeros(32, dtype=torch.long, device="cuda")) * own).sum().backward()
        optimizer.step()

    (part,) = open_file(pickle.dumps(capture.torch_preview(run).snapshot()), "step.pickle")
    (recording,) = part.read()
    of_role = np.bincount(torch_roles(recording), recording.allocations.requested)
    assert of_role[Role.PARAMETER] == (1000 * 256 + 256 * 64 + 64 + 3 * 64) * 4


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("        model(inputs)\n    return model, optimizer, train\n", "no backward pass"),
        ("        pass\n    return model\n", "a Sequential"),
        ("        pass\n    return model, optimizer\n", "0 functions"),
        ("        undefined\n    return train\n", "NameError"),
    ],
)
def test_mistakes_are_one_line(code: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(tmp_path, code) == 2
    assert message in capsys.readouterr().out


def test_a_loop_that_waits_for_a_value_of_the_gpu_ends() -> None:
    def run() -> None:
        import torch

        done = torch.rand((), device="cuda") > 1
        while not done:
            torch.empty(1000, device="cuda")

    traced = capture.torch_preview(run)
    assert traced.log.allocated > 1000
    assert any("ends after 1,000 turns" in one.text for one in traced.assumptions.found.values())


def test_steps_run_on_gpus_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(tmp_path, TRAINING, "--on", "v5e") == 2
    assert "traced for GPUs" in capsys.readouterr().err


SHARDED = """        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    torch.distributed.init_process_group("nccl")
    from torch.distributed.fsdp import fully_shard
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters())
    return model, optimizer, train
"""


@NOT_OF_OLD
def test_one_process_of_eight_has_an_eighth_of_the_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fit(tmp_path, SHARDED, "--on", "h100:8", "--json") == 0
    found = {one["target"]: one for one in json.loads(capsys.readouterr().out)["candidates"]}
    roles = json.loads((tmp_path / "logdir" / found["h100:8"]["run"] / "fit.json").read_text())["roles_bytes"]
    assert roles["optimizer_state"] == pytest.approx(PARAMETERS / 4, rel=0.01)
    assert any("NCCL" in text for text in found["h100:8"]["caveats"])


def test_a_preview_is_a_snapshot_of_what_would_be_allocated(tmp_path: Path) -> None:
    import torch

    def run() -> None:
        torch.ones(1 << 20, device="cuda").square()

    capture.torch_preview(run).save(tmp_path / "a.pickle")
    (recording,) = listing_of_path(str(tmp_path / "a.pickle")).recordings
    assert recording.allocations.size.tolist() == [4 << 20, 4 << 20]
    assert int(usage(recording).live[-1]) == 0  # the function has returned
    kept = []
    capture.torch_preview(lambda: kept.append(torch.ones(1 << 20, device="cuda"))).save(tmp_path / "b.pickle")
    del kept[:]
    (recording,) = listing_of_path(str(tmp_path / "b.pickle")).recordings
    assert int(usage(recording).live[-1]) == 4 << 20  # what the block kept is not freed in the recording
    with pytest.raises(InputError, match="No such GPU"):
        capture.torch_preview(run, on="v5e")
