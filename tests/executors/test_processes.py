"""Processes that run tasks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, CancelledError
from multiprocessing import active_children
from pathlib import Path

import pytest

from tb_memplugin.executors import LocalProcesses

pytestmark = pytest.mark.slow  # processes import the package


def double(number: int) -> int:
    return 2 * number


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_tasks_run_in_other_processes() -> None:
    processes = LocalProcesses(2)
    try:
        assert [processes.submit(double, number).result() for number in range(5)] == [0, 2, 4, 6, 8]
        assert processes.submit(os.getpid).result() != os.getpid()
        with pytest.raises(ValueError, match="invalid literal"):
            processes.submit(int, "x").result()
    finally:
        processes.stop()


def test_idle_processes_have_ended_once_they_are_stopped() -> None:
    others = set(active_children())  # of other tests
    processes = LocalProcesses(2)
    tasks = [processes.submit(double, number) for number in range(2)]
    assert [task.result() for task in tasks] == [0, 2] and set(active_children()) - others
    processes.stop()
    assert set(active_children()) <= others, "the end of the program may close their pipes twice"


def test_a_process_that_dies_fails_its_own_task_only() -> None:
    processes = LocalProcesses(1)
    try:
        tasks = [processes.submit(function, number) for number, function in enumerate((double, die, double, double))]
        with pytest.raises(BrokenExecutor):
            tasks[1].result()
        assert [tasks[number].result() for number in (0, 2, 3)] == [0, 4, 6]
    finally:
        processes.stop()


def is_running(process: Path) -> bool:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads /proc")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_the_program_that_started_them(tmp_path: Path, end: signal.Signals) -> None:
    script = "\n".join(
        [
            "import os, time",
            "from tb_memplugin.executors import LocalProcesses",
            "if __name__ == '__main__':",
            "    processes = LocalProcesses(2)",
            "    pids = [processes.submit(os.getpid).result()]",
            "    busy = [processes.submit(time.sleep, 600) for _ in range(2)]",
            "    print(pids[0], flush=True)",
            "    busy[0].result()",
        ]
    )
    (tmp_path / "script.py").write_text(script)
    with subprocess.Popen([sys.executable, str(tmp_path / "script.py")], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        worker = Path("/proc") / program.stdout.readline().strip()
        assert worker.exists()
        program.send_signal(end)
    deadline = time.monotonic() + 60
    while is_running(worker):
        assert time.monotonic() < deadline, "a process was left"
        time.sleep(0.05)


def test_a_program_ends_without_the_tasks_that_wait(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import time\n"
        "from tb_memplugin.executors import LocalProcesses\n"
        "if __name__ == '__main__':\n"
        "    processes = LocalProcesses(1)\n"
        "    tasks = [processes.submit(time.sleep, 0.2) for _ in range(1000)]\n"
        "    tasks[0].result()\n"
    )
    subprocess.run([sys.executable, str(tmp_path / "script.py")], check=True, timeout=150)  # the tasks take 200 seconds


def test_what_waits_is_canceled_at_the_end() -> None:
    processes = LocalProcesses(1)
    tasks = [processes.submit(double, number) for number in range(100)]
    processes.stop()
    with pytest.raises(CancelledError):
        tasks[-1].result()
    with pytest.raises(RuntimeError):
        processes.submit(double, 1)
