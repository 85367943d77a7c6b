"""moto's S3 server, which reads an object once: it would copy the whole of it for each range, as no store does.

python -m benchmarks.s3_server -p PORT
"""

from typing import Any

from moto.s3.models import FakeKey
from moto.server import main

KEY: Any = FakeKey  # whose types differ between versions
_read = KEY.value.fget


def _content(key: Any) -> bytes:
    kept = vars(key)
    if "content" not in kept:
        kept["content"] = _read(key)
    content: bytes = kept["content"]
    return content


if __name__ == "__main__":
    KEY.value = property(_content, KEY.value.fset)
    main()
