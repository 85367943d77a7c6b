"""Programs that produce the device profiles of this logdir: python demo_logdir/make_device_profiles.py [RUN ...]

They are the two programs of JAX's page "Profiling device memory", which shows their figures:

    device_profile       Two functions that allocate 38.15 MiB each, one of them called by the other.
    device_profile_leak  A loop that keeps every array it creates: nine profiles, one after each iteration.

Source paths are relative, as in the other runs. Needs jax and tb_memplugin.
"""

import gzip
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp

from tb_memplugin.protos.pprof_pb2 import Profile

LOGDIR = Path(__file__).resolve().parent
FOLDERS = re.compile(rf".*/site-packages/|{re.escape(str(LOGDIR.parent))}/".encode())


def func1(x: jax.Array) -> jax.Array:
    return jnp.tile(x, 10) * 0.5


def func2(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    y = func1(x)
    return y, jnp.tile(x, 10) + 1


def call_graph() -> None:
    x = jax.random.normal(jax.random.key(42), (1000, 1000))
    kept = func2(x)
    kept[1].block_until_ready()
    jax.profiler.save_device_memory_profile("memory.prof")


def afunction() -> jax.Array:
    return jax.random.normal(jax.random.key(77), (1000000,))


def anotherfunc() -> None:
    arrays = []
    for i in range(1, 10):
        x = jax.random.normal(jax.random.key(42), (i, 10000))
        arrays.append(x)
        x.block_until_ready()
        jax.profiler.save_device_memory_profile(f"memory{i}.prof")


def leak() -> None:
    kept = afunction()
    anotherfunc()
    del kept


RUNS: dict[str, Callable[[], None]] = {"device_profile": call_graph, "device_profile_leak": leak}


def capture(run: str) -> None:
    """Run one program in this process, in a temporary folder, and copy its profiles into the logdir."""
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        RUNS[run]()
        (LOGDIR / run).mkdir(exist_ok=True)
        for file in sorted(Path(scratch).glob("*.prof")):
            profile = Profile.FromString(gzip.decompress(file.read_bytes()))
            text = [FOLDERS.sub(b"", entry) for entry in profile.string_table]
            profile.string_table[:] = text
            (LOGDIR / run / file.name).write_bytes(gzip.compress(profile.SerializeToString(), mtime=0))
        os.chdir(LOGDIR)


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--here"]:
        return capture(arguments[1])
    if unknown := set(arguments) - set(RUNS):
        raise SystemExit(f"no such run: {', '.join(sorted(unknown))}; the runs are {', '.join(RUNS)}")
    for run in arguments or RUNS:
        subprocess.run([sys.executable, __file__, "--here", run], check=True, env=os.environ | {"JAX_PLATFORMS": "cpu"})


if __name__ == "__main__":
    main(sys.argv[1:])
