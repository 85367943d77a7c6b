"""Run a command, and write its exit code, seconds and largest memory in kilobytes into a file.

A child process begins with the largest memory of the process that started it. This one takes little: it imports almost
nothing.
"""

import os
import sys
import time

if __name__ == "__main__":
    figures, *command = sys.argv[1:]
    start = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ)
    _, status, used = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    with open(figures, "w") as file:
        file.write(f"{os.waitstatus_to_exitcode(status)} {seconds} {used.ru_maxrss}")
