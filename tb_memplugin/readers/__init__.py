"""Bytes in, Recordings out: one module per format, chosen here."""

from __future__ import annotations

import re
from functools import partial

from tb_memplugin.errors import InputError
from tb_memplugin.model.kinds import RecordingKind
from tb_memplugin.readers.common.part import Part


def open_file(data: bytes | memoryview, path: str, *, run: str = "", host: str = "") -> list[Part]:
    """What a file holds, by its name; nothing is parsed but the list. Raises InputError naming the file."""
    if not len(data):
        raise InputError("the file is empty", path, "the profile was not written to its end; profile again")
    if path.endswith(".xplane.pb"):
        from tb_memplugin.readers.xplane import open_xplane

        return open_xplane(data, path, run=run, host=host)
    if path.endswith((".hlo_proto.pb", ".hlo.pb")):
        from tb_memplugin.readers.hlo import read_hlo

        name = re.sub(r"(\.hlo_proto|\.hlo)\.pb$", "", path.rsplit("/", 1)[-1])
        # XProf names the file by the program's key. Any other name is only a name; the key is then in the file.
        title = name if re.search(r"\(\d+\)$", name) else ""
        read = partial(read_hlo, data, title=title, run=run, host=host, source=path)
        return [Part(name, RecordingKind.PROGRAM, path, len(data), read)]
    if path.endswith((".prof", ".pprof", ".pb.gz")):
        from tb_memplugin.readers.pprof import open_pprof

        return open_pprof(data, path, run=run, host=host)
    if path.endswith((".txt", ".log")):
        from tb_memplugin.readers.oom_text import read_oom_text

        read = partial(read_oom_text, data, run=run, host=host, source=path)
        return [Part("out-of-memory error", RecordingKind.OUT_OF_MEMORY, path, len(data), read)]
    if path.endswith((".json.gz", ".raw.gz", ".trace.json", ".memory.json", ".raw.json")):
        from tb_memplugin.readers.torch_profiler import open_torch_profiler

        return open_torch_profiler(data, path, run=run, host=host)
    if path.endswith((".pickle", ".pkl", ".json")):
        # A timeline or a trace may be saved as plain .json too.
        from tb_memplugin.readers.torch_profiler import is_of_profiler, open_torch_profiler
        from tb_memplugin.readers.torch_snapshot import open_snapshot

        if path.endswith(".json") and is_of_profiler(data):
            return open_torch_profiler(data, path, run=run, host=host)
        return open_snapshot(data, path, run=run, host=host)
    raise InputError("not a file we read", path, "give a logdir, a run, an .xplane.pb or a *.hlo_proto.pb")
