from collections.abc import Collection
from typing import Any

from tb_memplugin.native.charges import Charges
from tb_memplugin.native.text.spans import Spans

class Plan:
    def __init__(
        self,
        message: Any,
        skip: Collection[str] = ...,
        located: Collection[str] = ...,
        interned: Collection[str] = ...,
        sparse: Collection[str] = ...,
    ) -> None: ...

def scan(
    data: bytes | memoryview, plan: Plan, spans: Spans | None = None, budget: Charges | None = None
) -> dict[str, dict[str, Any]]: ...
