"""XProf's answer for Memory Viewer, from its converter without its server."""

import logging
from pathlib import Path

SUFFIX = ".hlo_proto.pb"


def memory_viewer(module_file: Path, memory_space: int = 0) -> bytes:
    """Return the JSON for <session>/<module>.hlo_proto.pb. Raises RuntimeError where the converter returns nothing.

    This is XProf's fastest path: its server first extracts such a file from the profile, which is not timed here. The
    converter takes the session from the path of the profile, without reading the profile.
    """
    from xprof.convert import raw_to_tool_data

    logging.getLogger("absl").setLevel(logging.ERROR)
    answer, _ = raw_to_tool_data.xspace_to_tool_data(
        [str(module_file.parent / "localhost.xplane.pb")],
        "memory_viewer",
        {"module_name": module_file.name.removesuffix(SUFFIX), "memory_space": str(memory_space)},
    )
    if not answer:
        raise RuntimeError(f"XProf has no answer for {module_file}")
    return answer if isinstance(answer, bytes) else str(answer).encode()
