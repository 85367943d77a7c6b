from collections.abc import Mapping
from typing import Any

from tb_memplugin.native.charges import Charges
from tb_memplugin.native.text.spans import Spans

def select(
    plane: bytes | memoryview, kinds: Mapping[int, int], lines: Spans | None = None, budget: Charges | None = None
) -> dict[str, Any]: ...
