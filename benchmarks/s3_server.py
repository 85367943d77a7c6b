"""moto's S3 server, which reads an object once: it would copy the whole of it for each range, as no store does.

python -m benchmarks.s3_server -p PORT
"""

from moto.s3.models import FakeKey
from moto.server import main

_read = FakeKey.value.fget


def _content(key: FakeKey) -> bytes:
    kept = vars(key)
    if "content" not in kept:
        kept["content"] = _read(key)
    content: bytes = kept["content"]
    return content


if __name__ == "__main__":
    FakeKey.value = property(_content, FakeKey.value.fset)
    main()
