"""Readers of profile files: one package per format, chosen by the file's name."""

from __future__ import annotations

import re
from functools import partial

from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.readers.common.part import FilePart


def open_file(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[FilePart]:
    """List the parts of a file, by its name, without parsing their contents.

    Raises InputError, naming the file, where the format is unknown or the list of parts is damaged.
    """
    if not len(data):
        raise InputError("the file is empty", path, "the profile was not fully written; profile again")
    if path.endswith(".xplane.pb"):
        from tb_memplugin.readers.xplane import open_xplane

        return open_xplane(data, path, run=run, host=host)
    if path.endswith((".hlo_proto.pb", ".hlo.pb")):
        from tb_memplugin.readers.hlo import read_hlo

        name = re.sub(r"(\.hlo_proto|\.hlo)\.pb$", "", path.rsplit("/", 1)[-1])
        # XProf names the file after the program's key. With any other name the key is read from the file.
        title = name if re.search(r"\(\d+\)$", name) else ""
        read = partial(read_hlo, data, title=title, run=run, host=host, source=path)
        return [FilePart(name, RecordingKind.PROGRAM, path, len(data), read)]
    if path.endswith((".prof", ".pprof", ".pb.gz")):
        from tb_memplugin.readers.pprof import open_pprof

        return open_pprof(data, path, run=run, host=host)
    if path.endswith((".txt", ".log")):
        from tb_memplugin.readers.oom_text import read_oom_text

        read = partial(read_oom_text, data, run=run, host=host, source=path)
        return [FilePart("out-of-memory error", RecordingKind.OUT_OF_MEMORY, path, len(data), read)]
    if path.endswith((".json.gz", ".raw.gz", ".trace.json", ".memory.json", ".raw.json")):
        from tb_memplugin.readers.torch_profiler import open_torch_profiler

        return open_torch_profiler(data, path, run=run, host=host)
    if path.endswith((".pickle", ".pkl", ".json")):
        # PyTorch's profiler and memory snapshots both write plain .json files.
        from tb_memplugin.readers.torch_profiler import is_profiler_json, open_torch_profiler
        from tb_memplugin.readers.torch_snapshot import open_snapshot

        if path.endswith(".json") and is_profiler_json(data):
            return open_torch_profiler(data, path, run=run, host=host)
        return open_snapshot(data, path, run=run, host=host)
    raise InputError("unknown file type", path, "pass a logdir, a run, an .xplane.pb or a *.hlo_proto.pb")
