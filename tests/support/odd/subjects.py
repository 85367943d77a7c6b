"""Small recordings of every format, to be mutated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from programs.stored import Stored
from support.odd.resized import plain
from support.servers import DATA, DEMO, TESTS
from support.torch_training import Training, recorded

from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.model.recording import Recording

TEXTS = TESTS / "data" / "oom_texts"
PROGRAMS = (
    "score_logits.v4", "accumulated.v5e", "flash_attention.tpu7x", "generate_int8.v5e", "decode_step.v5e",
    "lm_scanned.v5e", "mlp_adam.v5e", "offloaded_activations.v5p", "lora.h100", "ring_matmul.v4",
)  # fmt: skip
FILES = (
    DEMO / "leak",
    DEMO / "device_profile",
    DEMO / "device_profile_leak" / "memory1.prof",
    DEMO / "h100_train_step",
    TEXTS / "bfc_annotated.txt",
    TEXTS / "bfc_tensorflow.txt",
    TEXTS / "tpu_compile.txt",
    TEXTS / "tpu_v5e_blocks.txt",
    TEXTS / "xla_gpu.txt",
)
SMALL = 200_000  # bytes of a file of DATA


def _named() -> dict[str, Callable[[], Sequence[Recording]]]:
    found: dict[str, Callable[[], Sequence[Recording]]] = {}
    for name in PROGRAMS:
        found[name] = lambda name=name: Stored(*name.split(".")).recordings  # type: ignore[misc]
    for path in FILES:
        found[path.name] = lambda path=path: _of_file(path)  # type: ignore[misc]
    found["snapshot"] = lambda: [recorded(Training(2, clears=True, leaks=True, steps=True, blocks=True))]
    return found


def _of_file(path: Path) -> list[Recording]:
    return listing_of_path(str(path)).recordings


SUBJECTS = _named()


@cache
def subject(name: str) -> tuple[Recording, ...]:
    """Return the recordings of a file, at most three of them."""
    return tuple(plain(recording) for recording in SUBJECTS[name]()[:3])


def add_shared_data() -> None:
    """Add the real files that are not part of the repository."""
    for path in sorted(DATA.rglob("*")):
        if path.is_file() and path.stat().st_size < SMALL and path.suffix not in (".md",):
            SUBJECTS.setdefault(path.name, lambda path=path: _of_file(path))  # type: ignore[misc]
