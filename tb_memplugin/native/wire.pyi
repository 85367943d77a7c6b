from collections.abc import Collection
from typing import Any

class Plan:
    def __init__(self, descriptor: Any, skip: Collection[str] = ...) -> None: ...

def scan(data: bytes | memoryview, plan: Plan) -> dict[str, dict[str, Any]]: ...
