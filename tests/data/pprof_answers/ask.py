"""Answers of google/pprof for the profiles that tests read: python tests/data/pprof_answers/ask.py path/to/pprof

Writes `answers.json.gz` next to this file: for each query the flat and cumulative figures of every function, and every
call. By default, pprof treats `<module>` and `<lambda>` as C++ templates and shortens them to nothing.
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DEMO, REAL = ROOT / "demo_logdir", ROOT.parent / "shared" / "data" / "pprof"
WHOLE = ["-symbolize=demangle=none", "-tree", "-nodefraction=0", "-edgefraction=0", "-nodecount=1000000"]

Answer = dict[str, list[list[object]]]


def ask(pprof: str, *arguments: str) -> Answer:
    said = subprocess.run([pprof, *WHOLE, *arguments], check=True, capture_output=True, text=True).stdout
    return read(said)


def read(said: str) -> Answer:
    """Parse the blocks between rulers: callers, the function, its callees; each line ends in `|   name` or `| name`."""
    nodes: list[list[object]] = []
    calls: list[list[object]] = []
    for block in said.split("-" * 58 + "+" + "-" * 13 + "\n")[2:]:
        lines = [line.split("|", 1) for line in block.splitlines() if "|" in line]
        if not lines:
            continue
        (at,) = [i for i, (_, name) in enumerate(lines) if not name.startswith("   ")]
        figures = lines[at][0].split()
        name = lines[at][1].strip()
        nodes.append([name, number(figures[0]), number(figures[3])])
        calls += [[name, callee.strip(), number(text.split()[0])] for text, callee in lines[at + 1 :]]
    return {"nodes": nodes, "calls": calls}


def number(text: str) -> int:
    return int(text.removesuffix("B"))


def main(pprof: str) -> None:
    answers: dict[str, Answer] = {}
    leak = DEMO / "device_profile_leak"
    for path in [DEMO / "device_profile" / "memory.prof", leak / "memory9.prof", *sorted(REAL.glob("*.prof"))]:
        for by in ("functions", "filefunctions", "lines"):
            answers[f"{path.stem} {by} space"] = ask(pprof, f"-{by}", "-unit=B", str(path))
        answers[f"{path.stem} functions allocations"] = ask(pprof, "-sample_index=allocations", str(path))
    for by in ("functions", "lines"):
        answers[f"memory1 memory9 {by} space"] = ask(
            pprof, f"-{by}", "-unit=B", f"-diff_base={leak / 'memory1.prof'}", str(leak / "memory9.prof")
        )
    refined = REAL / "rknetemann_poscidyn_memory_d67b6e71.prof"
    for option in ("-focus=call", "-ignore=where", "-hide=jax/_src", "-focus=array.py", "-hide=."):
        answers[f"{refined.stem} {option}"] = ask(pprof, "-unit=B", option, str(refined))
    packed = gzip.compress(json.dumps(answers).encode(), mtime=0)
    (HERE / "answers.json.gz").write_bytes(packed)


if __name__ == "__main__":
    main(sys.argv[1])
