"""The command line, called in the process of the tests: to start another one takes a quarter of a second."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from tb_memplugin import cli


def run(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command, and return its exit code and what it printed, as subprocess.run does."""
    words = [str(argument) for argument in arguments]
    out, err, sent = (io.TextIOWrapper(io.BytesIO(content), "utf-8") for content in (b"", b"", stdin))
    with redirect_stdout(out), redirect_stderr(err), mock.patch.object(sys, "stdin", sent):
        try:
            code = cli.main(words)
        except SystemExit as end:
            code = int(end.code or 0)
        out.flush()
        err.flush()
    return subprocess.CompletedProcess(words, code, out.buffer.getvalue(), err.buffer.getvalue())


def run_for_text(*arguments: object) -> subprocess.CompletedProcess[str]:
    done = run(*arguments)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
