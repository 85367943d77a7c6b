"""The process that compiles one candidate: python -m tb_memplugin.fit.child FOLDER, with a request on standard input.

It writes `error.json` into the folder if it fails before XLA dumps the program; XLA writes the dump. Nobody waits for
the end of the compilation: the memory is assigned a few seconds into it.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

from tb_memplugin.errors import InputError
from tb_memplugin.fit.step_file import EXAMPLE, load_step
from tb_memplugin.fit.targets import devices_of, parse_target

OPTIONS = {"xla_dump_hlo_as_proto": True}
GPU_OPTIONS = {"xla_gpu_autotune_level": 0}  # without a GPU it takes half of the time and chooses nothing
REFUSED = "RESOURCE_EXHAUSTED"


def compile_candidate(folder: str, request: dict[str, Any]) -> None:
    """Call the user's function, and compile what it returns, with a dump to the folder."""
    target = parse_target(request["target"])
    assert target is not None
    devices = devices_of(target)
    returned = load_step(request["step"])(devices, **request["knobs"])
    lowered = _lower(returned, request["step"])
    options = {**OPTIONS, **(GPU_OPTIONS if target.platform == "cuda" else {}), "xla_dump_to": folder}
    lowered.compile(compiler_options=options)


def _lower(returned: Any, name: str) -> Any:
    """Lower what the user's function returned: a jitted function and its arguments, or a function lowered already."""
    if hasattr(returned, "compile") and hasattr(returned, "as_text"):
        return returned
    if not (isinstance(returned, tuple) and len(returned) == 2 and hasattr(returned[0], "lower")):
        raise InputError(f"{name} returned {type(returned).__name__}", name, f"return as in: {EXAMPLE}")
    function, arguments = returned
    return function.lower(*arguments)


def main(folder: str) -> int:
    request = json.load(sys.stdin)
    try:
        compile_candidate(folder, request)
    except InputError as error:
        answer = {"text": str(error), "traceback": ""}
    except BaseException as error:
        if REFUSED in str(error):  # XLA has written the dump
            return 0
        answer = {"text": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
    else:
        return 0
    Path(folder, "error.json").write_text(json.dumps(answer))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
