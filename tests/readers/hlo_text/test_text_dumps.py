"""Programs that are read from the texts of an XLA dump, against the same programs from protos."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.growth import grows_linearly

from tb_memplugin.analysis.usage.live_bytes import peak
from tb_memplugin.catalog import dumps
from tb_memplugin.catalog.listing import listing_of_path
from tb_memplugin.errors import InputError
from tb_memplugin.logdir import dumped_file
from tb_memplugin.model.recording import Recording
from tb_memplugin.readers import open_file
from tb_memplugin.readers.hlo.module.shapes import parsed, shape_text
from tb_memplugin.readers.hlo_text.shape import parse_shape

DATA = Path(__file__).parents[2] / "data" / "xla_dumps"
BOTH = ("tpu_v5e_text", "gpu_h100")
END = "after_optimizations"
TEXTS = (f"{END}-buffer-assignment.txt", f"{END}-live-range.txt", f"{END}.txt")


def from_texts(folder: str, *ends: str) -> list[Recording]:
    """Read a program from texts whose names end so, as one content."""
    paths = [next((DATA / folder).glob(f"*{end}")) for end in ends]
    (part,) = open_file(b"\n".join(path.read_bytes() for path in paths), f"x.{TEXTS[0]}")
    return part.read()


def from_proto(folder: str) -> list[Recording]:
    (part,) = open_file(next((DATA / folder).glob(f"*{END}.hlo.pb")).read_bytes(), "x.hlo.pb")
    return part.read()


def values(recording: Recording) -> list[tuple[str, int, int]]:
    rows = recording.allocations
    return sorted(zip(rows.name.tolist(), rows.offset.tolist(), rows.size.tolist(), strict=True))


def codes(recording: Recording) -> set[str]:
    return {caveat.code for caveat in recording.caveats}


@pytest.mark.parametrize("folder", BOTH)
@pytest.mark.parametrize("texts", [TEXTS, TEXTS[::-1], TEXTS[:2]])
def test_a_program_is_the_same_from_text_and_from_proto(folder: str, texts: tuple[str, ...]) -> None:
    for text, proto in zip(from_texts(folder, *texts), from_proto(folder), strict=True):
        assert text.memory == proto.memory
        assert text.regions.size.tolist() == proto.regions.size.tolist()
        assert values(text) == values(proto)
        assert peak(text).bytes == peak(proto).bytes
        assert codes(text) == (set() if len(texts) == 3 else {"no_module_text"})


@pytest.mark.parametrize("folder", BOTH)
def test_operations_shapes_and_lines_are_those_of_the_proto(folder: str) -> None:
    for text, proto in zip(from_texts(folder, *TEXTS), from_proto(folder), strict=True):
        for column in ("op", "op_name", "shape", "role", "start", "end"):
            theirs, ours = (list(getattr(recording.allocations, column)) for recording in (proto, text))
            if (text.memory, column) not in {("VMEM", "end"), ("VMEM", "start")}:  # of four slices in a custom call
                assert ours == theirs, column
        assert text.program is not None and proto.program is not None
        assert text.program.name.tolist() == proto.program.name.tolist()
        assert text.allocations.stack.tolist() == proto.allocations.stack.tolist()


@pytest.mark.parametrize("folder", BOTH)
def test_without_live_ranges_the_peak_is_an_upper_bound(folder: str) -> None:
    for text, proto in zip(from_texts(folder, TEXTS[0]), from_proto(folder), strict=True):
        assert values(text) == values(proto)
        reserved = int(text.regions.size.sum())
        assert peak(proto).bytes <= peak(text).bytes <= reserved == int(proto.regions.size.sum())
        assert codes(text) == {"no_live_ranges", "no_module_text"}


STEP = """
import jax, jax.numpy as jnp

def step(weights, x):
    def layer(carry, w):  # of seven elements: XLA prints a comment before the sixth
        first, *others = carry
        hidden = jnp.tanh(first @ w)
        return (hidden, first, *others[:-1]), hidden.sum()

    return jax.lax.scan(layer, tuple(x * i for i in range(1, 7)), weights)

jax.jit(step).lower(jnp.ones((4, 256, 256)), jnp.ones((64, 256))).compile()
"""


def test_what_xla_compiles_here_is_the_same_from_text_and_from_proto(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    flags = f"--xla_dump_to={tmp_path} --xla_dump_hlo_as_proto --xla_dump_hlo_as_text"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", STEP], env=environment, check=True)
    stem = next(tmp_path.glob(f"*jit_step*{END}.hlo.pb")).name.removesuffix(".hlo.pb")
    contents = {end: (tmp_path / f"{stem}{end}").read_bytes() for end in ("-buffer-assignment.txt", ".txt", ".hlo.pb")}
    ranges = (tmp_path / f"{stem}-live-range.txt").read_bytes()

    def only(*texts: bytes, name: str = f"x.{TEXTS[0]}") -> Recording:
        [part] = open_file(b"\n".join(texts), name)
        [found] = part.read()
        return found

    proto = only(contents[".hlo.pb"], name="x.hlo.pb")
    complete = only(contents["-buffer-assignment.txt"], ranges, contents[".txt"])
    without_ranges = only(contents["-buffer-assignment.txt"], contents[".txt"])
    assert values(complete) == values(without_ranges) == values(proto)
    assert peak(complete).bytes == peak(proto).bytes
    assert 0.95 * peak(proto).bytes <= peak(without_ranges).bytes <= 1.13 * peak(proto).bytes  # as its caveat says
    assert peak(proto).bytes <= peak(only(contents[".txt"])).bytes <= 1.1 * peak(proto).bytes


def test_a_folder_of_texts_is_read_and_its_totals_are_checked() -> None:
    listing = listing_of_path(str(DATA / "cpu_text_only"))
    (found,) = listing.recordings
    assert (found.title, listing.problems) == ("jit_step", [])
    assert not {"total_differs", "schedule_differs", "no_live_ranges", "no_module_text"} & codes(found)
    assert int(found.regions.size.sum()) == 7340072  # as the memory usage report has it


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Return a copy of a GPU's dump without protos."""
    return Path(shutil.copytree(DATA / "gpu_h100", tmp_path / "dump", ignore=shutil.ignore_patterns("*.pb")))


def test_a_program_as_proto_and_text_is_listed_once(texts: Path) -> None:
    (found,) = listing_of_path(str(texts)).recordings
    assert found.source.endswith(TEXTS[0])
    assert "gpu_target_config.pbtxt" in found.capacity_source
    shutil.copy(next((DATA / "gpu_h100").glob(f"*{END}.hlo.pb")), texts)
    (found,) = listing_of_path(str(texts)).recordings
    assert found.source.endswith(".hlo.pb")


def test_a_single_text_is_read_with_those_beside_it(texts: Path) -> None:
    path = next(texts.glob(f"*{TEXTS[0]}"))
    (found,) = listing_of_path(str(path)).recordings
    assert not {"no_live_ranges", "no_module_text"} & codes(found)
    assert dumps.reserved(dumped_file(str(path))) == {"HBM": int(found.regions.size.sum())}


def test_texts_of_older_versions_are_read() -> None:
    path = next((DATA / "gpu_h100").glob(f"*{TEXTS[0]}"))
    older = path.read_text().replace(": size ", ": 0x7f3c2c0, size ").replace(" page 0,", "")
    (part,) = open_file(older.encode(), f"x.{TEXTS[0]}")
    (found,) = part.read()
    assert values(found) == values(from_proto("gpu_h100")[0])


@pytest.mark.parametrize("text", [b"BufferAssignment:\n", b"no text of XLA\n", b"HloModule jit_step\n", b"\0\xff" * 99])
def test_another_text_is_an_error_with_a_remedy(text: bytes) -> None:
    (part,) = open_file(text, f"x.{TEXTS[0]}")
    with pytest.raises(InputError, match=r"keep \*-buffer-assignment.txt"):
        part.read()


@pytest.mark.parametrize("folder", BOTH)
def test_truncated_texts_are_read_as_far_as_they_go(folder: str) -> None:
    contents = [next((DATA / folder).glob(f"*{end}")).read_bytes() for end in TEXTS]
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):
        cut = b"\n".join(content[: int(share * len(content))] for content in contents)
        (part,) = open_file(cut, f"x.{TEXTS[0]}")
        assert all(peak(recording).bytes >= 0 for recording in part.read())


@pytest.mark.parametrize(
    ("line", "repeated"),
    [
        (b"allocation 0: size 4, ", b"constant, "),
        (b" value: <1 ", b"a{"),
        (b" value: <0 a @0> (size=4,offset=0): ", b"("),
        (b"  %a = ", b"(f32[1]{0:"),
        (b"  %a = f32[] add(", b"%b, "),
        (b"  %a = f32[] add(", b") "),
        (b"  %a = f32[] add(%b), metadata={", b'op_name="\\'),
        (b"%a (", b"("),
        (b"    a", b"{1"),
    ],
    ids=range(9),
)
def test_adversarial_lines_take_linear_time(line: bytes, repeated: bytes) -> None:
    head = b"BufferAssignment:\nallocation 0: size 4, thread-local:\n value: <0 a @0> (size=4,offset=0): f32[]\n"

    def read(size: int) -> None:
        long = line + repeated * (size // len(repeated))
        module = b"HloModule m", b"ENTRY %e (a) -> f32[] {"
        (part,) = open_file(b"\n".join((head, long, b"HloLiveRange (max 1):", long, *module, long)), f"x.{TEXTS[0]}")
        part.read()

    assert grows_linearly(read, 50_000)


@pytest.mark.parametrize(
    "text",
    [
        "f32[4096,4096]{1,0:T(8,128)S(1)}",
        "bf16[2,<=3]{1,0:T(8,128)(2,1)}",
        "(f32[]{:T(128)}, (s4[8]{0:E(4)}, pred[]))",
        "u8[16]{0:T(1024)(128)(4,1)L(2)}",
    ],
)
def test_a_shape_is_printed_as_it_was(text: str) -> None:
    assert shape_text(parsed(parse_shape(text))) == text
