"""A generated JAX device profile: as jaxlib writes it, one sample for each distinct traceback, size and device."""

import random

from tb_memplugin.protos.pprof_pb2 import Profile

DEPTH = 24  # frames; tracebacks through jit are 20 to 40 deep
SHARED = 16  # frames of JAX and of the loop, which many stacks have in common
STACKS = 50_000  # distinct ones, each with several sizes and on eight devices
LINES = 4000  # of the program


def generate(samples: int, seed: int = 0) -> Profile:
    """Generate a profile with a number of samples; equal seeds give equal profiles."""
    rng = random.Random(seed)
    profile = Profile(string_table=[b""])
    entries: dict[str, int] = {"": 0}

    def text(value: str) -> int:
        if value not in entries:
            entries[value] = len(profile.string_table)
            profile.string_table.append(value.encode())
        return entries[value]

    for name, unit in (("allocations", "count"), ("space", "bytes")):
        profile.sample_type.add(type=text(name), unit=text(unit))
    for i in range(1, LINES + 1):
        file = (
            f"/site-packages/jax/_src/file_{i % 40}.py" if i <= LINES // 4 else f"/home/user/model/layer_{i % 300}.py"
        )
        profile.function.add(id=i, name=text(f"function_{i}"), filename=text(file), start_line=i)
        profile.location.add(id=i).line.add(function_id=i, line=i % 900)
    kind, device, buffer = text("kind"), text("device"), text("buffer")
    devices = [text(f"TPU_{i}(process=0,({i},0,0,0))") for i in range(8)]
    common = [[rng.randint(1, LINES) for _ in range(SHARED)] for _ in range(300)]
    stacks = [
        [rng.randint(LINES // 4, LINES) for _ in range(DEPTH - SHARED)] + rng.choice(common) for _ in range(STACKS)
    ]
    for _ in range(samples):
        count = rng.randint(1, 3)
        size = rng.randint(1, 4096) << 8
        sample = profile.sample.add(location_id=rng.choice(stacks), value=[count, count * size])
        sample.label.add(key=kind, str=buffer)
        sample.label.add(key=device, str=rng.choice(devices))
    return profile
