"""PyTorch memory snapshots: torch.cuda.memory._dump_snapshot, as a pickle or as JSON."""

from functools import partial

from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.readers.common.part import FilePart
from tb_memplugin.readers.torch_profiler import is_profiler_json, open_torch_profiler
from tb_memplugin.readers.torch_snapshot.recordings import read_snapshot


def open_snapshot_or_profile(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    """Return the one part of a snapshot, or of a file of PyTorch's profiler: both are written as plain .json.

    It is one part, since the devices of a snapshot are known only after the whole file is read.
    """
    if path.endswith(".json") and is_profiler_json(data):
        return open_torch_profiler(data, path, run=run, host=host)
    read = partial(read_snapshot, data, path, run=run, host=host)
    return [FilePart(host, RecordingKind.TORCH_SNAPSHOT, path, len(data), read)]
