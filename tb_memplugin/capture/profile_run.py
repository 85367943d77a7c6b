"""The folder of this process in a logdir, which is a run, and what is saved in it when memory runs out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tb_memplugin.capture.guard import SlowFailures, describe, quietly, text_of, warn
from tb_memplugin.capture.new_files import (
    LogDir,
    create_file,
    create_folder,
    join,
    logdir_text,
    process_name,
    remove_empty_folder,
)
from tb_memplugin.model.out_of_memory import RESOURCE_EXHAUSTED

FOLDER = "device_profiles"
OUT_OF_MEMORY = (RESOURCE_EXHAUSTED, "out of memory", "Out of memory")
FAILED = "the device profile could not be saved, and training continues"


@dataclass
class ProfileRun:
    """The folder of this process in a logdir: each process needs one, since they use the same device names."""

    folder: str
    failures: SlowFailures = field(default_factory=SlowFailures)
    last_ms: int = 0

    def path(self, step: int | None) -> str:
        """Return the path of a new file, without its suffix. Its number rises with the step, or with the time."""
        if step is not None:
            return join(self.folder, f"memory_{int(step):08d}")
        self.last_ms = max(time.time_ns() // 10**6, self.last_ms + 1)  # rises even where the clock is set back
        return join(self.folder, f"memory_{self.last_ms}")


# The process is a part of the key, since a fork inherits the runs of its parent.
_runs: dict[tuple[int, str], ProfileRun] = {}


def run_of(logdir: LogDir, jax: Any = None) -> ProfileRun:
    """Return the run of this process, `<logdir>/device_profiles/<time of the first call>_<host>_<process id>`.

    `jax`: where the job uses it. Of several JAX processes, the index is then a part of the name.
    """
    text = logdir_text(logdir)
    key = os.getpid(), text
    if key not in _runs:
        index = f"_process_{jax.process_index()}" if jax is not None and jax.process_count() > 1 else ""
        name = f"{time.strftime('%Y_%m_%d_%H_%M_%S')}{index}_{process_name()}"
        run = ProfileRun(create_folder(join(text, FOLDER), name))
        if _runs.setdefault(key, run) is not run:  # another thread was first
            remove_empty_folder(run.folder)
    return _runs[key]


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error is about memory of a device or of the host."""
    return isinstance(error, MemoryError) or any(text in text_of(error) for text in OUT_OF_MEMORY)


Save = Callable[[str], str]  # writes a profile to a path without its suffix, and returns the path of the file


def save_quietly(logdir: LogDir, jax: Any, step: int | None, save: Save) -> str | None:
    """Save a profile, and return the path of the file; None where that fails, and soon after a slow failure.

    Never raises. `jax`: as for `run_of`.
    """
    with quietly(FAILED):
        run = run_of(logdir, jax)
        if not run.failures.is_pausing:
            with run.failures.attempt():
                return save(run.path(step))
    return None


def note_failure(logdir: LogDir, jax: Any, error: BaseException, save: Save) -> None:
    """Save a profile, and the error's text beside it, and add a note about the files to the error. Never raises."""
    try:
        path = run_of(logdir, jax).path(None)
        try:
            path = save(path)
        finally:  # the text of the error is useful without a profile, too
            text = text_of(error) or describe(error)
            create_file(f"{os.path.splitext(path)[0]}.oom.txt", text.encode("utf-8", "backslashreplace"))
        note = f"Device memory was saved to {path}. To view it, run: tb-memplugin serve --logdir {logdir_text(logdir)}"
    except Exception as failure:  # must not hide the original error
        warn(FAILED, failure)
        note = f"Device memory could not be saved: {describe(failure)}"
    with suppress(Exception):  # of an error whose class has notes of its own
        error.add_note(note)
