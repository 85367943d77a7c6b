"""XLA dump folders: one recording for each program and memory, with the chip that it was compiled for.

tests/data/xla_dumps contains what XLA wrote for a TPU v5e, an H100 and a CPU.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from tb_memplugin import logdir
from tb_memplugin.catalog import catalog as catalog_module
from tb_memplugin.catalog import dumps
from tb_memplugin.catalog.catalog import Catalog
from tb_memplugin.catalog.dumps import skipped_text
from tb_memplugin.catalog.listing import Listing, listing_of_path, read_file
from tb_memplugin.cli import main
from tb_memplugin.errors import InputError
from tb_memplugin.hosts.sources import catalog_source
from tb_memplugin.logdir import HostFile
from tb_memplugin.logdir.names import is_stage, parse_program
from tb_memplugin.model.accelerators import V5E
from tb_memplugin.model.recording import Recording
from tb_memplugin.questions.oom.failed_program import failed_program_in_logdir
from tb_memplugin.questions.recording.kernels import kernels
from tb_memplugin.readers.xla_dump import read_target

DATA = Path(__file__).parent / "data" / "xla_dumps"
TPU = "module_0000.jit_step.cl_1014260217"


def main_memory(listing: Listing) -> dict[str, Recording]:
    """Return the recordings of HBM by title."""
    return {recording.title: recording for recording in listing.recordings if recording.memory == "HBM"}


def codes(recording: Recording) -> set[str]:
    return {caveat.code for caveat in recording.caveats}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Return a copy of a TPU's dump with text."""
    return Path(shutil.copytree(DATA / "tpu_v5e_text", tmp_path / "dump"))


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("module_0000.jit_step.cl_1014260217.after_optimizations.hlo.pb", "jit_step"),
        ("module_0001.jit_step.sm_9.0a_gpu_after_optimizations.hlo.pb.gz", "jit_step"),
        ("module_0001.jit_step.gfx90a:sramecc+:xnack-_gpu_after_optimizations.hlo.pb", "jit_step"),
        ("1795326445897998.module_12345.jit_f.cpu_after_optimizations.hlo.pb", "jit_f"),
        ("module_0001.cluster_0__XlaNumResourceArgs_0_.12.sm_8.0_gpu_after_optimizations.hlo.pb",
         "cluster_0__XlaNumResourceArgs_0_.12"),
        ("module_0007.sm_9.0_gpu_after_optimizations.hlo.pb", "module_0007"),
        ("mlp.v5e.after_optimizations.hlo.pb.gz", "mlp.v5e"),
    ],
)  # fmt: skip
def test_a_programs_name_is_its_modules(name: str, title: str) -> None:
    program = parse_program(name)
    assert program is not None
    assert program.titles[0] == title
    assert not is_stage(name)


@pytest.mark.parametrize(
    "name",
    [
        "module_0000.jit_step.cl_1.before_optimizations.hlo.pb",
        "module_0000.jit_step.cl_1.after_optimizations_after_buffer_assignment.hlo.pb",
        "module_0000.jit_step.cl_1.after_codegen.hlo.pb.gz",
        "module_0000.jit_step.cl_1.oom_intermediate_module.hlo.pb",
        "module_0000.jit_step.0007.simplification.after_algsimp.before_dce.hlo.pb",
        "jit_step.after_spmd_partitioner.hlo.pb",
    ],
)
def test_other_stages_are_no_programs(name: str) -> None:
    assert is_stage(name)
    assert parse_program(name) is None


def test_a_program_is_one_entry_although_many_files_describe_it() -> None:
    listing = listing_of_path(str(DATA / "tpu_v5e"))
    assert not listing.problems
    assert main_memory(listing).keys() == {"jit_step (module 0)", "jit_evaluate", "jit_step (module 9)"}
    assert len({recording.id for recording in listing.recordings}) == len(listing.recordings)
    assert not [r.title for r in listing.recordings if {"total_differs", "schedule_differs"} & codes(r)]


@pytest.mark.parametrize(
    ("folder", "title", "chip"),
    [
        ("tpu_v5e", "jit_step (module 0)", "TPU v5e, from target_arguments.pb"),
        ("tpu_v5e_text", "jit_step", "TPU v5e, from target_arguments.txt"),
        ("tpu_v5e_refused", "jit_step", "TPU v5e, from target_arguments.pb"),
        ("gpu_h100", "jit_step", "NVIDIA H100 80GB HBM3, from gpu_target_config.pbtxt"),
        ("cpu_compressed", "jit_step (module 4)", ""),
    ],
)
def test_folders_of_every_backend_are_read(folder: str, title: str, chip: str) -> None:
    listing = listing_of_path(str(DATA))
    assert len({r.run for r in listing.recordings}) == 7
    found = next(r for r in listing.recordings if (r.run, r.title, r.memory) == (folder, title, "HBM"))
    assert chip in found.capacity_source
    assert (found.capacity is not None) == bool(chip)
    assert not {"total_differs", "schedule_differs"} & codes(found)


def test_a_refused_program_is_larger_than_its_chip() -> None:
    refused = main_memory(listing_of_path(str(DATA / "tpu_v5e_refused")))["jit_step"]
    assert refused.capacity is not None
    assert 32.8 < int(refused.regions.size.sum()) / 2**30 < 32.9  # "HLO temporaries (32.83G) exceeds ... (15.75G)"
    assert refused.capacity == V5E.hbm


def test_one_file_is_read_with_the_files_beside_it(dump: Path) -> None:
    (program,) = dump.glob("*after_optimizations.hlo.pb")
    found = main_memory(listing_of_path(str(program)))["jit_step"]
    assert found.capacity == V5E.hbm


def test_the_topology_names_the_chip_where_nothing_else_does(dump: Path) -> None:
    (dump / f"{TPU}.target_arguments.txt").unlink()
    found = main_memory(listing_of_path(str(dump)))["jit_step"]
    assert (found.capacity, found.capacity_source) == (V5E.hbm, "the limit of TPU v5e, from topology.pb")


@pytest.mark.parametrize("content", [b"", b"\xff" * 999, b"version: TPU_VERSION_NONE", os.urandom(4096), b"\x32\x7f"])
def test_a_target_that_cannot_be_read_is_no_target(content: bytes, dump: Path) -> None:
    shutil.rmtree(dump / TPU)
    for name in ("target_arguments.txt", "target_arguments.pb"):
        (dump / f"{TPU}.{name}").write_bytes(content)
    listing = listing_of_path(str(dump))
    assert main_memory(listing)["jit_step"].capacity is None
    assert not listing.problems
    assert read_target([("x.gpu_target_config.pbtxt", content)]) is None


def test_files_beside_a_program_are_neither_links_nor_pipes(dump: Path, tmp_path: Path) -> None:
    outside = shutil.move(dump / f"{TPU}.target_arguments.txt", tmp_path / "target_arguments.txt")
    (dump / f"{TPU}.target_arguments.txt").symlink_to(outside)
    (dump / TPU / "topology.pb").unlink()
    os.mkfifo(dump / TPU / "topology.pb")
    assert main_memory(listing_of_path(str(dump)))["jit_step"].capacity is None


def test_a_report_with_another_total_is_a_caveat(dump: Path) -> None:
    (report,) = dump.glob("*memory-usage-report.pb")
    report.unlink()
    text = report.with_suffix(".txt")
    before = main_memory(listing_of_path(str(dump)))["jit_step"]
    total = int(before.regions.size.sum())
    assert f"Total bytes: {total} " in text.read_text()
    assert "total_differs" not in codes(before)
    text.write_text(text.read_text().replace(f"Total bytes: {total} ", f"Total bytes: {total + 512} "))
    found = main_memory(listing_of_path(str(dump)))["jit_step"]
    (caveat,) = (caveat for caveat in found.caveats if caveat.code == "total_differs")
    assert caveat.bytes == 512
    (ranges,) = dump.glob("*live-range.txt")
    ranges.write_text("HloLiveRange (max 99999):\n")
    assert "schedule_differs" in codes(main_memory(listing_of_path(str(dump)))["jit_step"])


def test_stages_without_program_are_one_problem_with_a_remedy(dump: Path) -> None:
    ends = (".hlo.pb", "-buffer-assignment.txt", "-memory-usage-report.txt", ".txt")
    for path in (path for end in ends for path in dump.glob(f"*after_optimizations{end}")):
        path.unlink()
    (problem,) = listing_of_path(str(dump)).problems
    assert "jit_step" in problem.text
    assert "--xla_dump_hlo_as_proto" in problem.text
    assert problem.file.startswith(str(dump))


def test_stages_of_modules_with_a_program_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    listing = listing_of_path(str(DATA / "tpu_v5e"))
    assert (len(listing.recordings), listing.problems) == (9, [])
    assert skipped_text(listing.stages) == "12 stages without buffer assignment skipped."
    assert main(["summary", str(DATA / "tpu_v5e")]) == 0
    error = capsys.readouterr().err
    assert error == "tb-memplugin: 12 stages without buffer assignment skipped.\n"


def test_a_module_without_program_is_named_beside_the_others(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = dump / f"{TPU}.before_optimizations.hlo.pb"
    shutil.copy(before, dump / "module_0009.jit_large.cl_1.before_optimizations.hlo.pb")
    listing = listing_of_path(str(dump))
    assert not listing.problems
    assert "5 stages without buffer assignment skipped. No program of jit_large: " in skipped_text(listing.stages)
    assert main(["check", str(dump), "--max-peak", "1TiB", "--json"]) == 2  # it may be above the budget
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["file"].endswith("module_0009.jit_large.cl_1.before_optimizations.hlo.pb")
    assert "jit_large" in problem["text"]


def test_renamed_stages_are_paired_by_their_module(dump: Path, tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "deep" / "below"
    folder.mkdir(parents=True)
    for stage, name in (("after_optimizations", "step"), ("before_optimizations", "first"), ("after_codegen", "last")):
        shutil.copy(dump / f"{TPU}.{stage}.hlo.pb", folder / f"{name}.hlo.pb")
    listing = listing_of_path(str(tmp_path / "logs"))
    assert {recording.run for recording in listing.recordings} == {"deep/below"}
    assert not listing.problems
    assert skipped_text(listing.stages) == "2 stages without buffer assignment skipped."
    (folder / "step.hlo.pb").unlink()
    listing = listing_of_path(str(tmp_path / "logs"))
    (problem,) = listing.problems
    assert (listing.recordings, listing.stages) == ([], ())
    assert "--xla_dump_hlo_as_proto" in problem.text


def test_the_catalog_counts_the_stages_that_are_there_now(dump: Path) -> None:
    catalog = Catalog(str(dump.parent))
    assert skipped_text(catalog.listing("dump").stages).startswith("4 stages ")
    (dump / f"{TPU}.after_codegen.hlo.pb").unlink()
    assert skipped_text(catalog.listing("dump").stages).startswith("3 stages ")


def test_modules_before_optimizations_as_text_are_one_problem_with_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = next((DATA / "cpu_text_only").glob("*before_optimizations.txt"))
    shutil.copy(text, tmp_path)
    listing = listing_of_path(str(tmp_path))
    (problem,) = listing.problems
    assert not listing.recordings
    assert (
        "keep *after_optimizations-buffer-assignment.txt" in problem.text and "--xla_dump_hlo_as_proto" in problem.text
    )
    assert main(["explain", str(tmp_path)]) == 2
    assert "--xla_dump_hlo_as_proto" in capsys.readouterr().err


def test_a_single_stage_leads_to_the_program(dump: Path) -> None:
    (problem,) = listing_of_path(str(dump / f"{TPU}.before_optimizations.hlo.pb")).problems
    assert f"open {TPU}.after_optimizations.hlo.pb" in problem.text
    alone = shutil.copy(dump / f"{TPU}.before_optimizations.hlo.pb", dump.parent)
    (problem,) = listing_of_path(str(alone)).problems
    assert "--xla_dump_hlo_as_proto" in problem.text


def test_a_dump_lies_anywhere_below_a_logdir(dump: Path, tmp_path: Path) -> None:
    profile = tmp_path / "plugins" / "profile" / "today" / "h.xplane.pb"
    profile.parent.mkdir(parents=True)
    profile.write_bytes(b"x")
    shutil.copytree(dump, tmp_path / "train" / "xla")
    (tmp_path / "train" / "xla" / TPU / "memory.prof").write_bytes(b"a file of the compiler")
    assert {run.name for run in logdir.find_runs(str(tmp_path))} == {"train/xla", "today", "dump"}
    assert [run.name for run in logdir.find_runs(str(tmp_path / "train" / "xla"))] == ["xla"]


def test_a_compressed_program_is_the_same_program(dump: Path) -> None:
    before = main_memory(listing_of_path(str(dump)))["jit_step"]
    for path in dump.glob("*.pb"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    (dump / "other.hlo_proto.pb.gz").write_bytes(b"\x1f\x8bdamaged")
    listing = listing_of_path(str(dump))
    after = main_memory(listing)["jit_step"]
    assert (after.capacity, after.caveats) == (before.capacity, before.caveats)
    assert after.allocations.size.tolist() == before.allocations.size.tolist()
    (problem,) = listing.problems
    assert problem.file.endswith("other.hlo_proto.pb.gz") and "damaged gzip file" in problem.text


def test_remote_dumps_are_read_like_local_ones() -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    for path in (DATA / "tpu_v5e").rglob("*.*"):
        if path.is_file():
            memory.pipe(f"/dumps/job/{path.relative_to(DATA / 'tpu_v5e')}", path.read_bytes())
    listing = listing_of_path("memory://dumps")
    assert {recording.run for recording in listing.recordings} == {"job"}
    assert main_memory(listing)["jit_step (module 9)"].capacity == V5E.hbm


def test_kernels_have_their_limit_and_what_they_take(capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel with 8 MiB of windows, twice, may take 40 MiB; one with three windows of 1 MiB, twice, the default."""
    listing = listing_of_path(str(DATA / "tpu_v5e_kernels"))
    (vmem,) = (recording for recording in listing.recordings if recording.memory == "VMEM")
    found = [(k["op_name"], k["used_bytes"], k["limit_bytes"], len(k["operands"])) for k in kernels(vmem)["kernels"]]
    assert found == [
        ("jit(f)/scale/pallas_call", 16 << 20, 40 << 20, 1),
        ("jit(f)/add/pallas_call", 6 << 20, 16 << 20, 2),
    ]
    assert main(["explain", str(DATA / "tpu_v5e_kernels"), "--recording", "VMEM"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("40.0 of 128 MiB\n")
    assert "16.0 MiB  40.0 MiB  jit(f)/scale/pallas_call" in text
    assert "Fragmentation" not in text


def test_a_compilers_error_leads_to_the_module_in_the_logdir(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(DATA / "tpu_v5e_refused", tmp_path / "dump")
    text = (DATA.parent / "oom_texts" / "tpu_v5e_hbm.txt").read_text().replace("jit_f.", "jit_step.")
    (tmp_path / "error.oom.txt").write_text(text)
    assert main(["explain", str(tmp_path), "--recording", "OOM"]) == 0
    assert "--recording 'dump||jit_step|HBM'" in capsys.readouterr().out


def test_a_compilers_error_leads_to_a_renamed_program_too(tmp_path: Path) -> None:
    (tmp_path / "keep").mkdir()
    (program,) = (DATA / "tpu_v5e_refused").glob("*after_optimizations.hlo.pb")
    shutil.copy(program, tmp_path / "keep" / "too_large.hlo.pb")
    (tmp_path / "keep" / "damaged.hlo.pb").write_bytes(b"\xff" * 99)
    text = (DATA.parent / "oom_texts" / "tpu_v5e_hbm.txt").read_text()
    for name in ("jit_step", "jit_other"):
        (tmp_path / f"{name}.oom.txt").write_text(text.replace("jit_f.", f"{name}."))
    catalog = Catalog(str(tmp_path))
    source = catalog_source(catalog)
    answers = {}
    for recording in catalog.listing(tmp_path.name).recordings:
        assert recording.out_of_memory is not None
        answers[recording.out_of_memory.program] = failed_program_in_logdir(recording, source.recordings, source.runs)
    assert [program["title"] for program in answers["jit_step"]["programs"]] == ["jit_step(0)"]
    assert answers["jit_step"]["recipe"] is None
    assert answers["jit_other"]["programs"] == []
    assert "--xla_dump_hlo_as_proto" in str(answers["jit_other"]["recipe"])


def test_a_kernels_memory_is_unknown_without_the_stage_after_code_generation(tmp_path: Path) -> None:
    folder = shutil.copytree(DATA / "tpu_v5e_kernels", tmp_path / "dump")
    (stage,) = folder.glob("*after_codegen.hlo.pb")
    stage.write_bytes(b"\xff" * 100)
    (vmem,) = (recording for recording in listing_of_path(str(folder)).recordings if recording.memory == "VMEM")
    assert {(kernel["used_bytes"], kernel["limit_bytes"]) for kernel in kernels(vmem)["kernels"]} == {
        (None, 40 << 20),
        (None, 16 << 20),
    }


class TestManyPrograms:
    """A dump of an eager program has a module for each operation."""

    @pytest.fixture
    def many(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Return a dump of 40 small programs and the three of the TPU, of which 5 are listed."""
        monkeypatch.setattr(dumps, "MAX_PROGRAMS", 5)
        small = (DATA / "cpu_compressed").glob("*jit_evaluate.cpu_after_optimizations.hlo.pb.gz")
        content = gzip.decompress(next(small).read_bytes())
        shutil.copytree(DATA / "tpu_v5e", tmp_path / "dump")
        for number in range(40):
            name = f"module_{number + 100:04d}.jit_add.cpu_after_optimizations.hlo.pb"
            (tmp_path / "dump" / name).write_bytes(content)
        return tmp_path

    def test_the_largest_are_read_and_the_others_counted(self, many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        read: list[str] = []

        def counted(file: HostFile, run: str) -> Listing:
            read.append(file.path)
            return read_file(file, run)

        monkeypatch.setattr(catalog_module, "read_file", counted)
        listing = Catalog(str(many)).listing("dump")
        assert len(read) == 5
        assert {"jit_step (module 0)", "jit_evaluate", "jit_step (module 9)"} <= main_memory(listing).keys()
        (left,) = listing.left_out
        assert left.programs == 38
        assert 0 < left.bytes < 4 << 20

    def test_one_that_is_not_listed_has_an_id_all_the_same(self, many: Path) -> None:
        catalog = Catalog(str(many))
        listed = {recording.id for recording in catalog.listing("dump").recordings}
        assert (wanted := "dump||jit_add (module 139)|HBM") not in listed
        assert catalog.recording(wanted).title == "jit_add (module 139)"
        with pytest.raises(InputError, match="Unknown recording"):
            catalog.recording("dump||jit_add (module 999)|HBM")

    def test_commands_find_it_by_name(self, many: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["explain", str(many), "--recording", "module 139", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["recording"]["title"] == "jit_add (module 139)"
        assert main(["check", str(many), "--max-peak", "1GiB", "--recording", "jit_add", "--json", "--top=all"]) == 0
        assert len(json.loads(capsys.readouterr().out)["checked"]) == 40
        assert main(["summary", str(many)]) == 0
        assert "38 smaller programs of this dump are not listed" in capsys.readouterr().out
