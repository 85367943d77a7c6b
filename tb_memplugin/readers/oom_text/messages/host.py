"""Host memory: failed requests of frameworks, and processes killed by the system."""

import re
from collections.abc import Iterator

from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.out_of_memory import OutOfMemory
from tb_memplugin.readers.oom_text.failure import Buffer, Failure, Rows, last_matches, named_buffers, size_of
from tb_memplugin.sizes import PRINTED as SIZE

MARKS = (
    "137", "-9", "SIGKILL", "OOM", "oom", "bad_alloc", "MemoryError", "Killed", "ut of memory", "host memory",
    "you tried to allocate", "Unable to allocate",
)  # fmt: skip
REQUEST = re.compile(
    r"Out of memory allocating (?P<jaxlib>\d{1,18}) bytes"
    rf"|Out of host memory while trying to allocate (?P<xla>{SIZE})"
    r"|(?:can't allocate memory|not enough memory): you tried to allocate (?P<torch>\d{1,18}) bytes"
    r"|could not allocate pinned host memory of size: (?P<pinned>\d{1,18})"
    rf"|Unable to allocate (?P<numpy>{SIZE}) for an array with shape (?P<shape>\([\d, ]{{0,200}}\)) "
    r"and data type (?P<dtype>[^\s]{1,40})"
)
KERNEL = re.compile(
    r"[Oo]ut of memory: Kill(?:ed)? process (?P<pid>\d{1,10}) \((?P<name>[^)\n]{1,60})\)"
    r"[^\n]{0,200}?(?:anon-rss:(?P<anonymous>\d{1,15})kB)"
)
# Exit code 137 is 128 + SIGKILL; Python reports -9. Patterns with a literal start are fast.
KILL_PATTERNS = tuple(map(re.compile, (
    r"xit(?:ed|s|ing)?(?:[ _-](?:[Ww]ith|[Ss]tatus|[Cc]ode|[Vv]alue)){0,4}\s{0,2}[:=(]?\s{0,2}137\b",
    r"exitcode\s{0,4}[:=]\s{0,4}-9\b",
    r"died with <Signals\.SIGKILL: 9>",
    r"signal 9 \(SIGKILL\)",
    r"OOMKilled",
    r"oom[-_ ]kill",
    r"OOM[-_ ]kill",
    r"Memory cgroup out of memory",
    r"std::bad_alloc",
    r"(?<![\w.])MemoryError\b",
    r"(?<![^\n])Killed(?![^\n])",
)))  # fmt: skip
KILLED = Caveat(CaveatCode.KILLED, "The system killed the process before it could report its memory use")


def find(text: str) -> Iterator[Failure]:
    for match in last_matches(REQUEST, text):
        yield _failure(match, OutOfMemory(asked=_requested_bytes(match), host=True, wanted_by=_array_text(match)))
    for match in last_matches(KERNEL, text):
        used = int(match["anonymous"]) * 1024
        rows = named_buffers([Buffer(used, name=f"process {match['pid']} ({match['name']})")])
        yield _failure(match, OutOfMemory(in_use=used, host=True), rows, used)
    for pattern in KILL_PATTERNS:
        for match in last_matches(pattern, text):
            yield _failure(match, OutOfMemory(host=True), caveats=(KILLED,))


def _failure(
    match: re.Match[str], out_of_memory: OutOfMemory, rows: Rows | None = None, used: int | None = None,
    caveats: tuple[Caveat, ...] = (),
) -> Failure:  # fmt: skip
    return Failure(match.start(), "host", "host memory", out_of_memory, rows or Rows(), used=used, caveats=caveats)


def _requested_bytes(match: re.Match[str]) -> int | None:
    exact = match["jaxlib"] or match["torch"] or match["pinned"]
    return int(exact) if exact else size_of(match, "xla" if match["xla"] else "numpy")


def _array_text(match: re.Match[str]) -> str:
    return f"an array of shape {match['shape']} and data type {match['dtype']}" if match["shape"] else ""
