"""The thread that watches a job, and what a training script has of it.

from tb_memplugin import capture
with capture.watch("/tmp/xprof", at=0.9) as watched:
    for number, batch in enumerate(batches):
        watched.step(number)
        state = train_step(state, batch)
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Real
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import Self

from tb_memplugin.capture.guard import quietly
from tb_memplugin.capture.new_files import LogDir
from tb_memplugin.capture.profile_run import is_out_of_memory
from tb_memplugin.capture.watching.counters import Phase
from tb_memplugin.capture.watching.recorder import Output, SampleRecorder, WatchClock, open_outputs
from tb_memplugin.capture.watching.snapshots import save_after
from tb_memplugin.readers.watch_layout import UNKNOWN, RecordEvent

Restore = Callable[[], None]
OpenOutputs = Callable[[Callable[[], str]], list[Output]]  # called with what returns the folder of the run


def on_signal(request: Callable[..., None]) -> Restore:
    """Call `request` at SIGUSR1, then the job's own handler if it has one. Return a function that undoes this.

    Nothing is done outside the main thread, where Python sets no handlers, and where the job ignores the signal or
    handles it outside of Python. `request`: a function that is not written in Python, as signals interrupt Python's
    functions, and many at once would call it inside of itself; it gets the arguments of a handler.
    """
    number = getattr(signal, "SIGUSR1", None)  # Windows has none
    if number is None or threading.current_thread() is not threading.main_thread():
        return _nothing
    before = signal.getsignal(number)
    if before is None or before is signal.SIG_IGN:
        return _nothing

    def both(received: int, frame: FrameType | None) -> None:
        request(received, frame)
        if callable(before):
            before(received, frame)

    handler = both if callable(before) else request

    def restore() -> None:
        # Another handler that was set since then may call this one.
        if threading.current_thread() is threading.main_thread() and signal.getsignal(number) is handler:
            signal.signal(number, before)

    signal.signal(number, handler)
    return restore


def _nothing() -> None: ...


NS = 10**9
MAX_STEP = 2**62  # a record has 64 bits for it
# Samples take at most this share of one core, by their own processor time: if they are expensive, there are fewer.
MAX_SHARE = 0.0008  # below 0.1 %, which the average of a few samples must not exceed
COSTS = 5  # samples, over which their cost is averaged
# The job's end waits this long for the last record, such as of a file system that does not answer.
STOP_SECONDS = 5.0
FAILED = "memory is not watched, and training continues"


def watch(
    logdir: LogDir,
    *,
    every: float = 1.0,
    at: float = 0.9,
    port: int | None = None,
    host: str = "127.0.0.1",
    tensorboard: bool = False,
) -> Watch:
    """Record the memory of this process's devices and of its host, and who holds it when it runs short.

    Every `every` seconds, a thread reads the counters of each device that the job has started with JAX or PyTorch, and
    appends them to `<logdir>/device_profiles/<time>_<host>_<process id>/<host>_<process id>.watch`. Where a device has
    no counters, as on CPU, the bytes of its live arrays replace them. On Linux, the memory of this process, its child
    processes and /dev/shm is beside them, with the nearest limit of its cgroups; and with the package nvidia-ml-py,
    that of each GPU by process. `phase` marks parts of a step, whose peaks are recorded.

    A device profile is saved beside that file, at most one a minute: when a device has `at` (90 %) of its capacity in
    use, and again after each further 1 % of it; when the least memory in use between steps has grown; at SIGUSR1; and
    when the block runs out of memory, as `on_oom` does. Growth: the floor, the least bytes in use of 30 samples that
    contain the end of a step, has risen to a new maximum 5 times, by 5 % of the capacity since the last snapshot, or by
    25 % of the floor where the capacity is unknown. Without counters, so does the number of live arrays, by 1,000.

    `port`: serve Prometheus metrics there (package prometheus-client); 0 for a free port, which is logged. `host`: the
    address; "0.0.0.0" lets other machines read them, without a password. `gauges` returns the same figures for other
    loggers. `tensorboard`: also write the curves as scalars for TensorBoard's Time Series tab (package tensorboard;
    local logdirs only).

    The file stays below some megabytes, since old samples are thinned. Locally it is complete up to the last sample
    when the process is killed; in a remote logdir, up to the last minute, since stores cannot append. Samples are
    further apart where reading takes more than 0.1 % of a core, as with more than some hundred live arrays. A child
    process that the job forks is not watched.

    Training is never interrupted: the logger `tb_memplugin.capture` has one line for each kind of error. ValueError
    where `every` is not above 0, or `at` not between 0 and 1.
    """
    if not 0 < every < threading.TIMEOUT_MAX:
        raise ValueError(f"every is {every}: give the seconds between two samples")
    if not 0 < at <= 1:
        raise ValueError(f"at is {at}: give a share of the capacity, such as 0.9")
    return Watch(logdir, every, at, partial(open_outputs, port, host, tensorboard))


class Watch:
    """A job's watch: a context manager, or `start()` and `stop()`."""

    def __init__(self, logdir: LogDir, every: float, at: float, open_outputs: OpenOutputs) -> None:
        self._logdir, self._at, self._open_outputs = logdir, at, open_outputs
        self.every = every  # seconds between two samples
        self._clock = WatchClock()
        self._phase: Phase | None = None
        self._step = UNKNOWN, UNKNOWN  # number, and when it began, in nanoseconds since 1970
        self._thread: _WatchThread | None = None
        self._restore: Restore = _nothing
        self._process = 0

    def start(self) -> Self:
        """Begin to watch. Never raises. A watch that runs already goes on.

        SIGUSR1 is handled also where the watch cannot begin: the job's user sends it, and it would end the job.
        """
        if self._running() is None:
            messages: SimpleQueue[RecordEvent] = SimpleQueue()
            with quietly(FAILED):
                self._restore()
                self._process = os.getpid()
                self._restore = on_signal(partial(messages.put, RecordEvent.SAMPLE))
                recorder = SampleRecorder(self._logdir, int(self.every * NS), self._at, self._clock)
                recorder.phase = lambda: self._phase
                thread = _WatchThread(recorder, self, self._open_outputs, messages)
                thread.start()
                self._thread = thread
                atexit.register(self.stop)
        return self

    def stop(self) -> None:
        """Record a last sample, and close the file. Never raises."""
        if self._process != os.getpid():
            return
        thread, restore = self._thread, self._restore
        self._thread, self._restore = None, _nothing
        with quietly("watching could not be ended in order"):
            restore()
            if thread is None:
                return
            atexit.unregister(self.stop)
            thread.messages.put(RecordEvent.FINISHED)
            thread.join(STOP_SECONDS)

    def step(self, number: int) -> None:
        """Mark the beginning of a training step. Takes less than a microsecond. Never raises.

        `number`: a number of Python or NumPy. Arrays are not marked, since reading their value waits for the device.
        """
        self._step = number, self._clock.now_ns()  # examined by the watching thread

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Mark a part of each step, such as "rollout" or "train". Takes some microseconds, and raises nothing itself.

        Samples of the block count for this phase; inside of another phase, for the inner one alone.
        """
        outer, self._phase = self._phase, Phase(name, object())
        try:
            yield
        finally:
            self._phase = outer and Phase(outer.name, object())

    def gauges(self) -> dict[str, float]:
        """Return the figures of the last sample by name, as for `wandb.log`; none before a second one. Never raises.

        Names have the labels of Prometheus behind slashes: `tb_memplugin/memory_in_use_bytes/cuda:0`.
        """
        if (thread := self._running()) is None:
            return {}
        thread.recorder.has_readers = True
        return {gauge.path: gauge.value for gauge in thread.recorder.gauges}

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        thread = self._running()
        if isinstance(error, Exception) and thread is not None and is_out_of_memory(error):
            thread.messages.put(RecordEvent.OUT_OF_MEMORY)
            with quietly(FAILED):
                save_after(self._logdir, error)
        self.stop()

    @property
    def current_step(self) -> tuple[int, int]:
        """Return the number of the step that runs and when it began, in nanoseconds since 1970; -1 without steps."""
        number, began = self._step
        with quietly("steps are not marked in the memory curve"):
            if not isinstance(number, Real):
                raise TypeError(f"a number is of type {type(number).__name__}: count the steps in Python")
            return min(int(number), MAX_STEP), began
        return UNKNOWN, UNKNOWN

    def _running(self) -> _WatchThread | None:
        """Return the thread; None also in a fork, where it does not exist."""
        return self._thread if self._process == os.getpid() else None


class _WatchThread(threading.Thread):
    """Samples until the job stops it. The job shares no lock with it, only a queue that signal handlers may use."""

    def __init__(
        self, recorder: SampleRecorder, watched: Watch, open_outputs: OpenOutputs, messages: SimpleQueue[RecordEvent]
    ) -> None:
        super().__init__(name="tb_memplugin watch", daemon=True)
        self.messages = messages  # each asks for a record now; SAMPLE is that of a signal, with a snapshot
        self.recorder, self._watched, self._open_outputs = recorder, watched, open_outputs
        self._costs: deque[float] = deque(maxlen=COSTS)  # processor seconds

    def run(self) -> None:
        # Here, since imports and a server's start take long.
        self.recorder.outputs = self._open_outputs(self.recorder.folder)
        event = RecordEvent.SAMPLE
        while event is not RecordEvent.FINISHED:
            with quietly(FAILED):
                self._sample(event)
            event = self._next_event()
        with quietly(FAILED):
            self.recorder.sample(self._watched.current_step, RecordEvent.FINISHED)
        self.recorder.close()

    def _sample(self, event: RecordEvent) -> None:
        step, began = self._watched.current_step, time.thread_time()
        reason = self.recorder.sample(step, event)
        self._costs.append(time.thread_time() - began)
        self.recorder.measure_growth()
        if reason:
            self.recorder.snapshot(reason, step[0])

    def _next_event(self) -> RecordEvent:
        """Wait for the next sample, or for a message."""
        average = sum(self._costs) / len(self._costs) if self._costs else 0.0
        try:
            event = self.messages.get(timeout=max(self._watched.every, average / MAX_SHARE))
            while event is RecordEvent.SAMPLE:  # one snapshot for a storm of signals
                self.recorder.asked = True
                event = self.messages.get_nowait()
        except Empty:
            return RecordEvent.SAMPLE
        return event
