"""A trial of a wheel: installed into a new environment with nothing else on the PATH, summarizing and serving a logdir.

python3 .ci/try_wheel.py dist/tb_memplugin-0.1.0-*.whl demo_logdir
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import urllib.request
import venv
from pathlib import Path
from typing import Any

IMPORT = re.compile(r'"(\./[\w./-]+\.js)"')


def main(wheel: Path, logdir: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        programs = Path(folder, "environment", "bin")
        venv.create(programs.parent, with_pip=True)
        # No Node and no compiler: only the environment's own programs are found, and pip may not build anything.
        environment = {"PATH": str(programs), "HOME": folder}

        def run(*command: str) -> str:
            return subprocess.run(
                [programs / command[0], *command[1:]],
                env=environment,
                cwd=folder,
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            ).stdout

        run("python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", str(wheel))
        recordings = json.loads(run("tb-memplugin", "summary", str(logdir), "--json"))["recordings"]
        assert any(recording["kind"] == "program" and recording["peak_bytes"] > 0 for recording in recordings), (
            recordings
        )
        print(run("tb-memplugin", "summary", str(logdir)))
        command: list[str | Path] = [programs / "tb-memplugin", "serve", "--logdir", logdir, "--port", "0"]
        with subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
            try:
                check_server(server)
            finally:
                server.terminate()
    print(f"{wheel.name} works: {len(recordings)} recordings in {logdir.name}; the page and its data are served")


def check_server(server: subprocess.Popen[str]) -> None:
    assert server.stdout is not None
    words = server.stdout.readline().split()
    url = next(word for word in words if word.startswith("http://"))
    page = fetch(url).decode()
    scripts = [part.partition('"')[0] for part in page.split('src="')[1:]]
    # The page's script is short and imports the rest.
    imported = [name for script in scripts for name in IMPORT.findall(fetch(url + script).decode())]
    assert sum(len(fetch(url + name)) for name in imported) > 100_000, f"{scripts} import {imported}"
    assert "preact" in fetch(f"{url}licenses.txt").decode(), "the licenses of the page's packages are missing"
    runs: dict[str, Any] = json.loads(fetch(f"{url}api/runs"))
    assert runs["runs"], runs


def fetch(url: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=60) as response:
        content: bytes = response.read()
        return content


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
