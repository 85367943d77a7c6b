"""The logdir of the browser tests: the demo's runs, one with a damaged host, and one whose names are markup."""

from __future__ import annotations

import os
import shutil
from datetime import datetime
from pathlib import Path

from support.servers import DEMO

from tb_memplugin.protos import hlo_pb2, xplane_pb2

# The page starts with the newest run, the demo's train_step.
TRAIN, REMAT, DAMAGED, HOSTILE = "train_step/cpu", "scan_remat/cpu", "damaged/cpu", "hostile/cpu"
LARGEST, SMALL = "jit_train_step(0)", "jit_loss(2)"  # of the run TRAIN, by peak
GOOD_HOST, BAD_HOST = "localhost", "host2"

MARKUP = "<img src=x onerror=window.pwned=1>"
SCRIPT = "</script><script>window.pwned=1</script>"
HOSTILE_MODULE = f"jit_{MARKUP}"

WRITTEN = datetime(datetime.now().year, 1, 9, 12, 34).timestamp()  # the newest run; each other is a day older

_PROFILE = "plugins/profile/cpu"
_XPLANE = f"{_PROFILE}/localhost.xplane.pb"


def build_logs(root: Path) -> Path:
    for run in ("train_step", "scan_remat", "oom"):
        shutil.copytree(DEMO / run, root / run)
    shutil.copy(DEMO / "make_demo.py", root)  # the code that the frames name
    profile = (DEMO / "train_step" / _XPLANE).read_bytes()
    _write(root / "damaged" / _PROFILE / f"{GOOD_HOST}.xplane.pb", profile)
    _write(root / "damaged" / _PROFILE / f"{BAD_HOST}.xplane.pb", profile[: len(profile) // 2])
    _write(root / "hostile" / _XPLANE, _hostile(profile))
    for age, run in enumerate(("train_step", "scan_remat", "oom", "hostile", "damaged")):
        for path in (root / run).rglob("*.pb"):
            os.utime(path, (WRITTEN - age * 86_400,) * 2)
    return root


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _hostile(profile: bytes) -> bytes:
    """Return the profile with one program whose names are all markup, which runs if a page ever inserts it as HTML."""
    space = xplane_pb2.XSpace.FromString(profile)
    plane = next(plane for plane in space.planes if plane.name == b"/host:metadata")
    del plane.event_metadata[1]
    program = plane.event_metadata[2]
    assert program.name == SMALL.encode()
    program.name = f"{HOSTILE_MODULE}(2)".encode()
    [stat] = [stat for stat in program.stats if stat.WhichOneof("value") == "bytes_value"]
    hlo = hlo_pb2.HloProto.FromString(stat.bytes_value)
    hlo.hlo_module.name = HOSTILE_MODULE.encode()
    for computation in hlo.hlo_module.computations:
        for instruction in computation.instructions:
            instruction.name += MARKUP.encode()
            instruction.metadata.op_name += SCRIPT.encode()
    frames = hlo.hlo_module.stack_frame_index
    for names in (frames.file_names, frames.function_names):
        names[:] = [name + MARKUP.encode() for name in names]
    stat.bytes_value = hlo.SerializeToString()
    return space.SerializeToString()


def listing(root: Path) -> dict[str, tuple[int, int]]:
    """Return size and modification time of every file and folder below `root`."""
    found = [root, *root.rglob("*")]
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


def lock(root: Path, *, locked: bool) -> None:
    """Make everything below `root` read-only, or writable again."""
    for path in (root, *root.rglob("*")):
        path.chmod(0o755 if not locked else 0o555)
