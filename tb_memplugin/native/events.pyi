from collections.abc import Mapping
from typing import Any, Final

from tb_memplugin.native.spans import Spans

ABSENT: Final[int]
NUMBER: Final[int]
DOUBLE: Final[int]
TEXT: Final[int]
REFERENCE: Final[int]

def collect(
    plane: bytes | memoryview, kinds: Mapping[int, int], columns: Mapping[int, int], width: int
) -> dict[str, Any]: ...
def every(
    plane: bytes | memoryview, kinds: Mapping[int, int], columns: Mapping[int, int], lines: Spans | None = None
) -> dict[str, Any]: ...
def any_event(plane: bytes | memoryview) -> bool: ...
