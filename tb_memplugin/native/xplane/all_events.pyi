from collections.abc import Mapping
from typing import Any

from tb_memplugin.native.charges import Charges
from tb_memplugin.native.text.spans import Spans

def every(
    plane: bytes | memoryview,
    kinds: Mapping[int, int],
    columns: Mapping[int, int],
    lines: Spans | None = None,
    budget: Charges | None = None,
) -> dict[str, Any]: ...
def any_event(plane: bytes | memoryview, budget: Charges | None = None) -> bool: ...
