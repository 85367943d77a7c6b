"""Training steps of public models, traced without a GPU, against what PyTorch's allocator had on an H100.

python -m benchmarks.torch_preview [NAME ...]; needs torch, torchvision and transformers. The code of the steps, and
what was measured in their second run, are in tests/data/h100.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tb_memplugin.torch_fit.tracing import TracedProgram, trace

FOLDER = Path(__file__).parents[1] / "tests" / "data" / "h100"
RUNS = 2
Make = Callable[[], tuple[Any, Callable[[Any], None], Any]]


def steps() -> dict[str, Make]:
    """Return the functions that make a model, its step and its optimizer, by name, from the code that ran."""
    common = (FOLDER / "torch_steps.txt").read_text().partition("\ndef run(")[0]
    further = (FOLDER / "torch_steps_held_back.txt").read_text()
    further = further[further.index("def hf(") : further.index("CONFIGS = {k:")]
    names: dict[str, Any] = {}
    with patch.object(sys, "argv", ["", ""]):
        exec(compile(f"{common}\n{further}", "torch_steps.txt", "exec"), names)
    return {**names["CONFIGS"], **names["KEPT"]}


def measured() -> Iterator[dict[str, Any]]:
    for name in ("torch_steps.json", "torch_steps_held_back.json"):
        rows = json.loads((FOLDER / name).read_text())["steps"]
        yield from (row for row in rows if not row.get("autocast_left_on"))


def requested(traced: TracedProgram) -> int:
    """Return the most bytes that tensors had in the second run."""
    sizes, live, most = dict[int, int](), 0, 0
    for position, event in enumerate(traced.log.events):
        if event.size >= 0:
            sizes[event.number] = event.size
            live += event.size
        else:
            live -= sizes.pop(event.number)
        most = max(most, live) if position >= traced.marks[0] else live
    return most


def main(names: list[str]) -> None:
    print("| step | requested, H100 | traced | reserved, H100 | traced |\n|---|---:|---:|---:|---:|")
    for row in measured():
        if names and row["name"] not in names:
            continue
        with trace() as traced:
            _, step, optimizer = kept = steps()[row["name"]]()
            for _ in range(RUNS):
                step(optimizer)
                traced.mark()
        reserved = sum(segment["total_size"] for segment in traced.snapshot()["segments"])
        cells = []
        for real, ours in ((row["requested2"], requested(traced)), (row["reserved2"], reserved)):
            cells += [f"{real / 2**20:,.1f}", f"{100 * (ours / real - 1):+.1f} %"]
        print(f"| {row['name']} | {' | '.join(cells)} |", flush=True)
        del kept, step, optimizer
        gc.collect()


if __name__ == "__main__":
    main(sys.argv[1:])
