"""Runs of many hosts, of which one is read at a time."""

from __future__ import annotations

from tb_memplugin.fleet.sessions import hosts_of
from tb_memplugin.logdir import Run, is_remote

# An overview of 1,000 files of 0.9 MB takes 70 s, and one of 64 MiB of them 5 s. Snapshots that one process saved in a
# loop are smaller: 1,000 of them take 3 s. Each file of a remote store takes about ten requests.
MANY_HOSTS, MANY_BYTES = 16, 64 << 20


def is_read_by_host(run: Run) -> bool:
    """Return whether a run is read host by host, by its names and sizes."""
    is_many = len(hosts_of(run)) > MANY_HOSTS
    return is_many and (is_remote(run.root) or sum(file.size for file in run.files) > MANY_BYTES)


def first_hosts(run: Run) -> Run:
    """Return a run with the files of its first hosts."""
    first = set(hosts_of(run)[:MANY_HOSTS])
    return run._replace(files=tuple(file for file in run.files if file.host in first))


def left_out_text(run: Run) -> str:
    """Return a sentence about the hosts that are left out."""
    return (
        f"Only the first {MANY_HOSTS} of {len(hosts_of(run)):,} hosts are read here, as reading all takes long. "
        "The Fleet tab finds the worst device of all."
    )
