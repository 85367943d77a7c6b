"""Trials of inputs within limits of time and memory, in a process that may be ended by one.

Time is that of the processor: the kernel's timer ends the process, and Python's fault handler writes the stack before,
even while native code runs. Memory is limited in two ways: an allocation far over the limit fails, and the peak of the
resident memory is read after each input.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

from fuzz.faults import place_of, save
from fuzz.state import Progress, State
from fuzz.subjects import Subject

from tb_memplugin.readers.common.budget import BASE_BYTES, COMPRESSED_MULTIPLE

SANITIZED = "FUZZ_SANITIZED"  # in the environment: the native modules have sanitizers, which take memory and time
SLOWER = 10 if os.environ.get(SANITIZED) else 1
SECONDS, SECONDS_PER_MB = 4.0 * SLOWER, 12.0 * SLOWER
# As the readers' own budget allows for a compressed file, and room for the analyses.
MEMORY, MEMORY_PER_BYTE = BASE_BYTES + (128 << 20), COMPRESSED_MULTIPLE
ADDRESS_SPACE = 1 << 30  # above what the process has at its start
RESTART = 75  # exit status of a worker that exceeded its memory: another one goes on


def seconds_of(data: bytes) -> float:
    """Return how much time of the processor an input may take."""
    return SECONDS + SECONDS_PER_MB * len(data) / 1e6


class Trial:
    """Tries inputs of a subject, counts them, and saves the faults."""

    def __init__(self, subject: Subject, state: State, faults: Path, number: int) -> None:
        self.subject = subject
        self.state = state
        self.faults = faults
        self.progress = Progress(number)
        warnings.simplefilter("ignore")
        faulthandler.enable(sys.stderr)
        faulthandler.register(signal.SIGPROF, sys.stderr, all_threads=False, chain=True)
        self._status = os.open("/proc/self/status", os.O_RDONLY)

    def limit_memory(self) -> None:
        """Set the limits, after everything that any input uses is loaded."""
        if not os.environ.get(SANITIZED):
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + ADDRESS_SPACE
            resource.setrlimit(resource.RLIMIT_AS, (size, size))

    def run(self, data: bytes, everything: bool = False) -> None:
        """Try one input. Ends the process where it took too much memory."""
        self.state.begin(self.progress, data)
        peak, resident = self._memory()  # what libFuzzer itself took is not the input's
        number, tried, answered, faults, slowest = self.progress
        before = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, seconds_of(data))
        try:
            answered += self.subject.attempt(data, everything)
        except Exception as error:
            faults += 1
            save(self.faults, place_of(error), data, traceback.format_exc())
        signal.setitimer(signal.ITIMER_PROF, 0)
        slowest = max(slowest, time.process_time() - before)
        self.progress = Progress(number + 1, tried + 1, answered, faults, slowest)
        self.state.end(self.progress)
        highest = self._memory()[0]
        taken = highest - resident if highest > peak else 0
        if taken > MEMORY + MEMORY_PER_BYTE * len(data) and SLOWER == 1:
            text = f"{len(data)} bytes took {taken >> 20} MiB"
            save(self.faults, f"memory of {self.subject.name}, 2^{taken.bit_length()} bytes", data, text)
            self.state.end(self.progress._replace(faults=faults + 1))
            os._exit(RESTART)

    def _memory(self) -> tuple[int, int]:
        """Return the peak of the resident memory, and the resident memory now, in bytes."""
        text = os.pread(self._status, 4096, 0)
        peak, now = (text.index(name) + len(name) for name in (b"VmHWM:", b"VmRSS:"))
        return int(text[peak : text.index(b"k", peak)]) << 10, int(text[now : text.index(b"k", now)]) << 10
