"""XLA dump folders: the chip that a program was compiled for, and XLA's own totals, to check recordings."""

import re
from collections.abc import Iterable, Mapping

from google.protobuf.message import DecodeError

from tb_memplugin.errors import InputError
from tb_memplugin.model.accelerators import Chip, chip_of_gpu_target_config, chip_of_target_arguments, chip_of_topology
from tb_memplugin.model.caveats import Caveat, CaveatCode
from tb_memplugin.model.recording import Recording
from tb_memplugin.native.protobuf.messages import Plan, scan
from tb_memplugin.protos.xla_dump_fields import MemoryUsageReport
from tb_memplugin.protos.xla_dump_pb2 import TpuTargetArguments
from tb_memplugin.readers.common.budget import ReadBudget
from tb_memplugin.sizes import bytes_text, counted

# XLA's numbers of the TPU versions, and their names in target_arguments.txt.
VERSIONS = {1: "JELLYFISH", 2: "DRAGONFISH", 3: "PUFFERFISH", 4: "VIPERFISH", 5: "GHOSTLITE", 6: "6acc60406"}


def read_target(files: Iterable[tuple[str, bytes]]) -> tuple[Chip, str] | None:
    """Return the chip, and the kind of file that names it, from (name, content) pairs; None if no file does."""
    for name, content in files:
        kind = next((suffix for suffix in PARSERS if name.endswith(suffix)), None)
        if kind is not None and (chip := PARSERS[kind](content)) is not None:
            return chip, kind
    return None


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _target_arguments(content: bytes) -> Chip | None:
    """Parse target_arguments.pb, which XLA writes if it dumps no text."""
    try:
        arguments = TpuTargetArguments.FromString(content).tpu_topology_args
    except DecodeError:
        return None
    version, variant, name = VERSIONS.get(arguments.version, ""), _text(arguments.variant), arguments.chip_config_name
    as_text = f'version: TPU_VERSION_{version}\nvariant: "{variant}"\nchip_config_name: "{_text(name)}"'
    return chip_of_target_arguments(as_text)


PARSERS = {
    "gpu_target_config.pbtxt": lambda content: chip_of_gpu_target_config(_text(content)),
    "target_arguments.txt": lambda content: chip_of_target_arguments(_text(content)),
    "target_arguments.pb": _target_arguments,
    "topology.pb": chip_of_topology,
}


SPACE = re.compile(rb"Memory Space: [^\n]{0,80}\(color=(\d{1,9})\)\s+Total bytes: (\d{1,18})\b")
SCHEDULE = re.compile(rb"HloLiveRange \(max (\d{1,9})\)")
REPORT = Plan(MemoryUsageReport)


def reported_totals(files: Iterable[tuple[str, bytes]]) -> Mapping[int, int]:
    """Return the bytes of each memory space in the memory usage report among (name, content) pairs."""
    for name, content in files:
        if name.endswith("-memory-usage-report.pb"):
            try:
                table = scan(content, REPORT, budget=ReadBudget(content, name))["memory_spaces"]
            except (ValueError, InputError):  # damaged
                continue
            return dict(zip(table["color"].tolist(), table["total_bytes"].tolist(), strict=True))
        if name.endswith("-memory-usage-report.txt") and (found := SPACE.findall(content)):
            return {int(color): int(total) for color, total in found}
    return {}


def scheduled_instructions(files: Iterable[tuple[str, bytes]]) -> int | None:
    """Return the length of the schedule by the live-range report; None if there is none."""
    for name, content in files:
        if name.endswith("-live-range.txt") and (found := SCHEDULE.match(content)):
            return int(found[1])
    return None


def differences(recording: Recording, totals: Mapping[int, int], length: int | None) -> Iterable[Caveat]:
    """Yield a caveat for each figure of XLA's reports that differs from the recording's."""
    program = recording.program
    if program is None:
        return
    ours, theirs = int(recording.regions.size.sum()), totals.get(program.memory_space)
    if theirs is not None and theirs != ours:
        text = f"XLA's memory usage report has {bytes_text(theirs)} of {recording.memory}, and this program's buffer "
        text += f"allocations add up to {bytes_text(ours)}. The bytes are the difference."
        yield Caveat(CaveatCode.TOTAL_DIFFERS, text, abs(theirs - ours))
    if length is not None and length != recording.length:
        text = f"XLA's live ranges cover {counted(length, 'instruction')}, this schedule {recording.length:,}."
        yield Caveat(CaveatCode.SCHEDULE_DIFFERS, text)
