from collections.abc import Buffer
from typing import Any

class Plan:
    def __init__(self, descriptor: Any) -> None: ...

def scan(data: bytes | memoryview, plan: Plan) -> dict[str, dict[str, Any]]: ...
