"""A generated profile of a module with a given number of logical buffers, and the figures to expect from it.

    python -m benchmarks.generate 100000 /tmp/synthetic

The module is what a TPU compiler might make of the training step in program.py. XProf can read it too. Equal seeds give
equal bytes.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from benchmarks.assignment import assign
from benchmarks.program import Step
from benchmarks.writer import MODULE, PROGRAM_ID, Writer
from tb_memplugin.protos import hlo_pb2, xplane_pb2


@dataclass(frozen=True, slots=True)
class ExpectedProgram:
    """The figures that a reader must find, in bytes with padding. Persistent memory counts at every position."""

    logical_buffers: int
    peak_bytes: int
    peak_position: int  # in the schedule: the first instruction at the peak
    peak_event: int  # in the heap-simulator trace: the ALLOC that reaches it
    persistent_bytes: int  # arguments, results and constants
    reserved_bytes: int  # all allocations


def generate(logical_buffers: int, seed: int = 0) -> tuple[hlo_pb2.HloProto, ExpectedProgram]:
    """Generate a module with exactly this number of logical buffers, in memory."""
    schedule = Step(logical_buffers, seed).schedule
    plan = assign(schedule)
    writer = Writer(schedule, plan)
    proto = hlo_pb2.HloProto(hlo_module=writer.module(), buffer_assignment=writer.buffers())
    reserved = sum(allocation.size for allocation in proto.buffer_assignment.buffer_allocations)
    persistent = reserved - plan.heap_size
    expected = ExpectedProgram(
        logical_buffers=len(writer.buffer_id),
        peak_bytes=persistent + plan.live_peak,
        peak_position=plan.peak_position,
        peak_event=plan.peak_event,
        persistent_bytes=persistent,
        reserved_bytes=reserved,
    )
    return proto, expected


def profile(proto: hlo_pb2.HloProto) -> xplane_pb2.XSpace:
    """Return a profile with the module in its metadata plane, under its name and program id."""
    space = xplane_pb2.XSpace(hostnames=[b"localhost"])
    plane = space.planes.add(name=b"/host:metadata")
    plane.stat_metadata[1].CopyFrom(xplane_pb2.XStatMetadata(id=1, name=b"Hlo Proto"))
    plane.stat_metadata[2].CopyFrom(xplane_pb2.XStatMetadata(id=2, name=b"program_id"))
    event = plane.event_metadata[PROGRAM_ID]
    event.id, event.name = PROGRAM_ID, f"{MODULE}({PROGRAM_ID})".encode()
    event.stats.add(metadata_id=1, bytes_value=proto.SerializeToString(deterministic=True))
    event.stats.add(metadata_id=2, uint64_value=PROGRAM_ID)
    return space


def write(logdir: Path, logical_buffers: int, seed: int = 0) -> tuple[Path, ExpectedProgram]:
    """Write the profile as a run of `logdir`."""
    proto, expected = generate(logical_buffers, seed)
    session = logdir / f"synthetic_{logical_buffers}" / "plugins" / "profile" / "cpu"
    session.mkdir(parents=True, exist_ok=True)
    path = session / "localhost.xplane.pb"
    path.write_bytes(profile(proto).SerializeToString(deterministic=True))
    return path, expected


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logical_buffers", type=int)
    parser.add_argument("logdir", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(*write(arguments.logdir, arguments.logical_buffers, arguments.seed), sep="\n")
