"""The chip that a dumped program was compiled for."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.message import DecodeError

from tb_memplugin.model.chips import Chip, chip_of_gpu_target_config, chip_of_target_arguments, chip_of_topology
from tb_memplugin.protos.xla_dump_pb2 import TpuTargetArguments

# The numbers of the versions that target_arguments.txt has names for.
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
    """Parse the form that XLA writes if it dumps no text."""
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
