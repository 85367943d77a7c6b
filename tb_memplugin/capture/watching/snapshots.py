"""Snapshots of who holds the memory, by the frameworks that the job uses, beside the curve."""

from __future__ import annotations

from tb_memplugin.capture.guard import Quietly
from tb_memplugin.capture.new_files import LogDir, create_file
from tb_memplugin.capture.profile_run import FAILED, ProfileRun, note_failure, run_of
from tb_memplugin.capture.watching.frameworks import started_jax, started_torch


def watched_run(logdir: LogDir) -> ProfileRun:
    """Return the run of this process. Its name has the index that JAX has started the process with."""
    jax = started_jax()
    return run_of(logdir, jax.process_index() if jax is not None and jax.process_count() > 1 else None)


def save_snapshot(logdir: LogDir, step: int | None, reason: str) -> None:
    """Save a JAX device profile, or a PyTorch snapshot without history. Never raises."""
    if started_jax() is not None:
        from tb_memplugin.capture.device_profiles import save_profile

        save_profile(logdir, step, reason)
    elif started_torch() is not None:
        with Quietly(FAILED):
            run = watched_run(logdir)
            if not run.failures.is_pausing:
                with run.failures.attempt():
                    _save_torch(run.path(step, ""))


def save_after(logdir: LogDir, error: BaseException) -> None:
    """Save a snapshot after an out-of-memory error as on_oom does. Never raises."""
    if started_jax() is not None:
        from tb_memplugin.capture import device_profiles

        device_profiles.save_after(logdir, error)
    elif started_torch() is not None:
        note_failure(logdir, error, watched_run, _save_torch)


def _save_torch(path: str) -> str:
    """Save PyTorch's segments and blocks, with stacks where the job records them."""
    torch = started_torch()
    assert torch is not None
    return create_file(f"{path}.pickle", torch.cuda.memory._dump_snapshot)
