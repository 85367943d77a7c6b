"""The limits that Linux's kernel sets for a script and the processes that it starts: where they write, and no network.

Landlock (Linux 5.13) refuses changes of files outside of given folders, also by compiled extensions, and a filter of
system calls refuses sockets of the internet. Both need no rights, and last until the process ends.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Sequence

# Numbers of the kernel's interface: include/uapi/linux/landlock.h, prctl.h, seccomp.h, audit.h and filter.h.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG, PATH_BENEATH = 1, 1
WRITE_FILE, REFER, TRUNCATE = 1 << 1, 1 << 13, 1 << 14
MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
NO_NEW_PRIVILEGES, SECCOMP, FILTER_MODE = 38, 22, 2
SOCKET = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}  # architecture, and number of the call `socket`
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.ENETUNREACH
INTERNET = (2, 10)  # AF_INET, AF_INET6
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/shm")


def confine(folders: Sequence[str]) -> bool:
    """Let this thread, and what it starts, change files in these folders only, and reach no network.

    Return False where the kernel cannot: then nothing is limited.
    """
    if sys.platform != "linux" or platform.machine() not in SOCKET:
        return False
    kernel = ctypes.CDLL(None, use_errno=True)
    version = kernel.syscall(CREATE_RULESET, None, 0, VERSION_FLAG)
    if version < 1 or kernel.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return False
    return _refuse_network(kernel) and _refuse_writes(kernel, version, [*folders, *DEVICES])


def _refuse_writes(kernel: ctypes.CDLL, version: int, places: Sequence[str]) -> bool:
    of_files = WRITE_FILE | (TRUNCATE if version >= 3 else 0)
    handled = of_files | MAKE_AND_REMOVE | (REFER if version >= 2 else 0)
    rules = kernel.syscall(CREATE_RULESET, struct.pack("=Q", handled), 8, 0)
    if rules < 0:
        return False
    try:
        for place in filter(os.path.exists, places):
            number = os.open(place, os.O_PATH | os.O_CLOEXEC)
            allowed = handled if os.path.isdir(place) else of_files
            refused = kernel.syscall(ADD_RULE, rules, PATH_BENEATH, struct.pack("=Qi", allowed, number), 0)
            os.close(number)
            if refused:
                return False
        return not kernel.syscall(RESTRICT_SELF, rules, 0)
    finally:
        os.close(rules)


def _refuse_network(kernel: ctypes.CDLL) -> bool:
    """Let the call `socket` fail for the families of the internet."""
    architecture, socket = SOCKET[platform.machine()]
    # (code, instructions to skip if equal, and if not, operand)
    steps = [
        (LOAD, 0, 0, 4),  # the architecture
        (JUMP_IF_EQUAL, 0, 5, architecture),
        (LOAD, 0, 0, 0),  # the number of the call
        (JUMP_IF_EQUAL, 0, 3, socket),
        (LOAD, 0, 0, 16),  # its first argument
        (JUMP_IF_EQUAL, 2, 0, INTERNET[0]),
        (JUMP_IF_EQUAL, 1, 0, INTERNET[1]),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    described = struct.pack("@HP", len(steps), ctypes.addressof(program))
    return not kernel.prctl(SECCOMP, FILTER_MODE, described, 0, 0)
