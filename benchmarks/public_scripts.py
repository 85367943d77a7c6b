"""Training scripts of public repositories, compiled as they are for a TPU: what each needs, and how long it took.

python -m benchmarks.public_scripts FOLDER [NAME ...]: FOLDER has clones of the repositories by their names, and their
packages are installed, with JAX for TPU. NanoDO also needs a vocabulary, `vocab.model`, in FOLDER.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tb_memplugin.sizes import bytes_text

ON = "v5e:2x2"
GEMMA = ", ".join(
    f"{name}{part}: int32[{{batch}}*4,128]"
    for name in ("inputs", "targets")
    for part in ("", "_position", "_segmentation")
)


@dataclass(frozen=True)
class Script:
    """A script of a repository, at a commit, with the words of `fit` and its own command line."""

    repository: str
    commit: str
    folder: str  # in which it is started
    words: str
    fakes: tuple[str, ...] = ()
    line: str = ""


SCRIPTS = {
    "nanodo": Script(
        *("google-deepmind/nanodo", "10aefde", ".", "nanodo/main.py --vary batch=176"),
        ("nanodo.data.py_batched_tfds=iter(int32[{batch},512])",),
        "--config=nanodo/configs/default.py --config.workdir=/w --config.vocab_path=../vocab.model "
        "--config.batch_size={batch}",
    ),
    "imagenet": Script(
        *("google/flax", "18f8f311", "examples/imagenet", "main.py --vary batch=3904"),
        (
            "tensorflow_datasets.builder=iter(1)",
            "train.create_input_iter=iter({image: bfloat16[4,{batch}//4,224,224,3], label: int32[4,{batch}//4]})",
        ),
        "--workdir=/w --config=configs/tpu.py --config.batch_size={batch} --config.num_train_steps=10",
    ),
    "gemma": Script(
        *("google/flax", "18f8f311", "examples/gemma", "main.py --vary batch=16"),
        (f"input_pipeline.get_datasets=(iter({{{GEMMA}}}), iter(1), iter(1,35008))",),
        "--workdir=/w --config=configs/default.py --config.per_device_batch_size={batch} "
        "--config.vocab_path=../../../vocab.model",
    ),
    "ppo": Script("luchris429/purejaxrl", "31756b1", "purejaxrl", "ppo.py"),
    "bit": Script(
        *("google-research/big_vision", "0127fb6", ".", "-m big_vision.train --vary batch=1024"),
        (
            "big_vision.input_pipeline.training="
            "(iter({image: float32[{batch},224,224,3], labels: float32[{batch},1000]}), 1281167)",
        ),
        "--workdir=/w --config=big_vision/configs/bit_i1k.py --config.input.batch_size={batch}",
    ),
    "simply": Script(
        *("google-deepmind/simply", "e14c061", ".", "-m simply.main"),
        (
            "simply.data_lib.create_iter_dataset=iter({decoder_input_tokens: int32[4,64], "
            "decoder_target_tokens: int32[4,64], decoder_loss_weights: float32[4,64]})",
        ),
        "--experiment_config lm_test --experiment_dir /w",
    ),
    "maxtext": Script(
        *("AI-Hypercomputer/maxtext", "479dd9994", "src", "-m maxtext.trainers.pre_train.train --vary batch=4"),
        (),
        "maxtext/configs/base.yml run_name=x base_output_directory=/w dataset_type=synthetic "
        "per_device_batch_size={batch} steps=10 base_num_decoder_layers=2 enable_checkpointing=false",
    ),
    "jax_md": Script("jax-md/jax-md", "a41c7d1", "examples", "nve_neighbor_list.py"),
}


def command(script: Script) -> list[str]:
    """Return the command that compiles a script."""
    fakes = [word for fake in script.fakes for word in ("--fake-input", fake)]
    fit = [sys.executable, "-m", "tb_memplugin", "fit", *script.words.split(), "--on", ON, "--no-prove", "--json"]
    return [*fit, *fakes, "--", *script.line.split()]


def rows(folder: Path, names: list[str]) -> Iterator[str]:
    """Yield a line about each script, as soon as it is compiled."""
    yield f"{'script':<10} {'at commit':<44} {'reserved':>10} {'seconds':>8}"
    for name in names:
        script = SCRIPTS[name]
        place = folder / script.repository.rpartition("/")[2] / script.folder
        if not place.is_dir():
            yield f"{name:<10} {script.repository}@{script.commit} is not in {folder}"
            continue
        path = os.pathsep.join([str(place), str(Path(__file__).parents[1])])
        ended = subprocess.run(
            command(script), cwd=place, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
        )
        found: dict[str, Any] = {"error": ended.stderr[-200:]}
        if ended.stdout:
            found = json.loads(ended.stdout)["candidates"][0]
        size = found["error"] or f"{bytes_text(found['reserved_bytes']):>10} {found['seconds']:>8.0f}"
        yield f"{name:<10} {f'{script.repository}@{script.commit}':<44} {size}"


if __name__ == "__main__":
    for line in rows(Path(sys.argv[1]).absolute(), sys.argv[2:] or list(SCRIPTS)):
        print(line, flush=True)
