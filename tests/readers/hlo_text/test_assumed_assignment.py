"""Programs whose buffer assignment is computed from the module, against the assignment of XLA."""

from __future__ import annotations

import gzip
import random
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from support.growth import TIMES, grows_linearly

from tb_memplugin.analysis.advice import advise
from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.errors import InputError
from tb_memplugin.protos.hlo_pb2 import HloProto
from tb_memplugin.readers import open_file
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.readers.hlo.placement import LiveRanges
from tb_memplugin.readers.hlo.recordings import read_hlo
from tb_memplugin.readers.hlo_text.assumed import MAX_PACKED, assume_assignment
from tb_memplugin.readers.text import read_text

DATA = Path(__file__).parents[2] / "data"
PROGRAMS = sorted(path for folder in ("programs", "h100") for path in (DATA / folder).glob("*.hlo.pb.gz"))
NONE = np.empty(0, np.int64)
# An in-place update of one of six elements: XLA prints a comment before the sixth.
MODULE = """HloModule jit_step, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }, num_partitions=1

ENTRY %main (a: f32[1024], b: f32[256], c: s32[]) -> (f32[1024], f32[1024]) {
  %a = f32[1024]{0} parameter(0)
  %b = f32[256]{0} parameter(1)
  %c = s32[]{} parameter(2)
  %large = f32[2048]{0} broadcast(%c), dimensions={}
  %part = f32[1024]{0} slice(%large), slice={[0:1024]}
  %six = (f32[1024], f32[256], s32[], s32[], s32[], /*index=5*/f32[1024]) tuple(%a, %b, %c, %c, %c, /*index=5*/%part)
  %sixth = f32[1024]{0} get-tuple-element(%six), index=5
  %updated = f32[1024]{0} dynamic-update-slice(%sixth, %b, %c)
  %first = f32[1024]{0} negate(%a)
  %second = f32[1024]{0} negate(%updated)
  ROOT %result = (f32[1024]{0}, f32[1024]{0}) tuple(%first, %second)
}
"""


class Ratios(NamedTuple):
    peak: float  # of that of XLA
    reserved: float
    peak_of_reserved: float


@cache
def ratios(path: Path) -> Ratios:
    """Return the bytes of a program's first memory with an assumed assignment, as parts of those with XLA's."""
    data = gzip.decompress(path.read_bytes())
    proto = HloProto()
    proto.hlo_module.CopyFrom(HloProto.FromString(data).hlo_module)
    assume_assignment(proto, path.name, ReadBudget(data, path.name))
    ranges = LiveRanges(NONE, NONE, NONE, True)
    ours, xla = (
        (peak(recording).bytes, int(recording.regions.size.sum()))
        for recording in (
            read_hlo(proto.SerializeToString(), source=path.name, ranges=ranges)[0],
            read_hlo(data, source=path.name)[0],
        )
    )
    return Ratios(ours[0] / xla[0], ours[1] / xla[1], ours[0] / ours[1])


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name.removesuffix(".hlo.pb.gz"))
def test_the_peak_is_never_lower_than_that_of_xla(path: Path) -> None:
    assert 0.999 <= ratios(path).peak <= 1.5
    assert ratios(path).reserved <= 1.45
    assert ratios(path).peak_of_reserved <= 1


def test_most_peaks_are_those_of_xla() -> None:
    peaks = np.array([ratios(path).peak for path in PROGRAMS])
    assert np.mean(peaks < 1.005) > 0.7
    assert np.mean(peaks < 1.05) > 0.8


def test_memory_is_shared_as_xla_shares_it() -> None:
    (found,) = read_text(MODULE.encode(), source="step.txt")
    assert [caveat.code for caveat in found.caveats] == ["assignment_assumed"]
    rows = found.allocations
    offset = dict(zip(rows.name.tolist(), zip(rows.region.tolist(), rows.offset.tolist(), strict=True), strict=True))
    assert offset["updated"] == offset["part"]  # updated in place
    assert offset["first"][0] == offset["a"][0]  # donated
    kinds = found.regions.size.tolist()
    assert sorted(kinds) == sorted([4096, 1024, 4, 4096, 16, 8192 + 4096])
    assert peak(found).bytes == 4096 + 1024 + 4 + 4096 + 16 + 8192 + 4096


@pytest.mark.parametrize(
    "name", ["step.txt", "step.hlo", "step.hlo.txt", "module_0001.jit_step.after_optimizations.txt"]
)
def test_a_module_is_read_under_any_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(MODULE)
    (found,) = listing_of_path(str(tmp_path / name)).recordings
    assert peak(found).bytes == peak(read_text(MODULE.encode(), source="x")[0]).bytes


def test_a_module_without_a_schedule_is_refused() -> None:
    with pytest.raises(InputError, match="no module with a schedule"):
        read_text(MODULE.replace(", is_scheduled=true", "").encode(), source="step.txt")


def test_an_asynchronous_fusion_contains_its_fusion() -> None:
    text = """HloModule jit_f, is_scheduled=true

%fused (p: f32[1024], q: f32[1]) -> f32[1024] {
  %p = f32[1024]{0} parameter(0)
  %q = f32[1]{0} parameter(1)
  %zero = s32[] constant(0)
  ROOT %update = f32[1024]{0} dynamic-update-slice(%p, %q, %zero)
}

ENTRY %main (a: f32[1], b: f32[]) -> f32[1024] {
  %a = f32[1]{0} parameter(0)
  %b = f32[]{} parameter(1)
  %zeros = f32[1024]{0} broadcast(%b), dimensions={}
  %fusion-start = ((f32[1024]{0}, f32[1]{0}), f32[1024]{0}, u32[]) fusion-start(%zeros, %a), kind=kLoop, calls=%fused
  %fusion-done = f32[1024]{0} fusion-done(%fusion-start)
  ROOT %result = f32[1024]{0} negate(%fusion-done)
}
"""
    (found,) = read_text(text.encode(), source="f.txt")
    assert found.program is not None
    done = found.program.op.tolist().index("async-done")
    assert "fusion" in found.program.op.tolist()[:done]
    rows = found.allocations
    end = dict(zip(rows.name.tolist(), rows.end.tolist(), strict=True))
    assert end["zeros"] == done + 1  # it is read until then
    assert end["fusion-start.async.fusion"] == done + 2


@pytest.mark.parametrize("folder", ["tpu_v5e_text", "gpu_h100", "cpu_text_only"])
def test_damaged_modules_are_read_or_refused(folder: str) -> None:
    """Delete, repeat, swap and cut lines, and exchange names."""
    text = next((DATA / "xla_dumps" / folder).glob("*after_optimizations.txt")).read_text()
    names = re.findall(r"%[\w.-]+", text)
    for seed in range(60):
        chance = random.Random(seed)
        head, *lines = text.split("\n")
        for _ in range(chance.randrange(1, 30)):
            one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
            changed = [[], [lines[other], lines[one]], [lines[one][: chance.randrange(80)]],
                       [lines[one].replace(chance.choice(names), chance.choice(names))]]  # fmt: skip
            lines[one : one + 1] = chance.choice(changed)
        try:
            found = read_text("\n".join((head, *lines)).encode(), source="step.txt")
        except InputError:
            continue
        assert all(peak(recording).bytes <= int(recording.regions.size.sum()) for recording in found)


def test_many_arrays_take_linear_time_and_still_share_memory() -> None:
    def module(count: int) -> bytes:
        arrays = "\n".join(f"  %v.{i} = f32[256]{{0}} broadcast(%a), dimensions={{}}" for i in range(count))
        head = "HloModule m, is_scheduled=true\n\nENTRY %main (a: f32[]) -> f32[256] {\n  %a = f32[]{} parameter(0)\n"
        return f"{head}{arrays}\n  ROOT %r = f32[256]{{0}} negate(%v.0)\n}}\n".encode()

    assert grows_linearly(lambda size: read_text(module(size), source="m.txt"), 2 * MAX_PACKED // TIMES)
    [found] = read_text(module(3 * MAX_PACKED), source="m.txt")
    assert int(found.regions.size.sum()) < 10 * 1024  # one is live at a time


@pytest.mark.parametrize("folder", ["tpu_v5e_text", "gpu_h100", "cpu_text_only"])
def test_a_usage_report_alone_has_the_reserved_bytes(folder: str) -> None:
    dump = DATA / "xla_dumps" / folder
    report = next(dump.glob("*-memory-usage-report.txt"))
    (part,) = open_file(report.read_bytes(), report.name)
    listed = {found.memory: int(found.regions.size.sum()) for found in listing_of_path(str(dump)).recordings}
    for found in part.read():
        assert int(found.regions.size.sum()) == listed[found.memory]
        assert {caveat.code for caveat in found.caveats} == {"no_live_ranges", "no_module_text"}
        assert advise(found) == []


def test_older_usage_reports_name_their_allocations() -> None:
    text = """Total bytes used: 1049092 (1.00MiB)

Allocations sorted by size:

cumulative_size; total_size - cumulative_size; allocation
------------------------------------------------------------------------------
   1.00MiB(100%);       516B; allocation 6: size 1.00MiB, preallocated-temp:
   1.00MiB(100%);         4B; allocation 1: size 512B, parameter 0, shape |f32[128]| at ShapeIndex {}:

The rest 1 allocations are less than 0.0% of the total size and not shown.

Allocations sorted by size with their values:
allocation 6: size 1.00MiB, preallocated-temp:
\tcumulative_size; size; offset; used_by_n_values; shapes_list
\t------------------------------------------------------------
\t 512.0KiB( 50%);  512.0KiB;   0;  2; f32[512,256], f32[100]
\t  1.00MiB(100%);  512.0KiB;   524288;  1; f32[512,256]
"""
    (found,) = read_text(text.encode(), source="report.txt")
    assert found.regions.size.tolist() == [1 << 20, 512]
    assert found.allocations.size.tolist() == [1 << 19, 1 << 19]


def test_the_most_complete_file_of_a_program_is_listed(tmp_path: Path) -> None:
    dump = DATA / "xla_dumps" / "tpu_v5e_text"
    ends = ("after_optimizations-memory-usage-report.txt", "after_optimizations.txt",
            "after_optimizations-buffer-assignment.txt", "after_optimizations.hlo.pb")  # fmt: skip
    for end in ends:
        file = next(dump.glob(f"*{end}"))
        (tmp_path / file.name).write_bytes(file.read_bytes())
        found = listing_of_path(str(tmp_path)).recordings
        assert {recording.source.rsplit("/", 1)[-1] for recording in found} == {file.name}
        assert {recording.title for recording in found} == {"jit_step"}
