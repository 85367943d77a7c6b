from collections.abc import Mapping
from typing import Any

from tb_memplugin.native.charges import Charges

def select(plane: bytes | memoryview, kinds: Mapping[int, int], budget: Charges | None = None) -> dict[str, Any]: ...
