from collections.abc import Mapping
from typing import Any, Final

from tb_memplugin.native.charges import Charges

ABSENT: Final[int]
NUMBER: Final[int]
DOUBLE: Final[int]
TEXT: Final[int]
REFERENCE: Final[int]

def collect(
    plane: bytes | memoryview,
    kinds: Mapping[int, int],
    columns: Mapping[int, int],
    width: int,
    budget: Charges | None = None,
) -> dict[str, Any]: ...
