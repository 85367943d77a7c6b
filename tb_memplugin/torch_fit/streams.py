"""Streams of a GPU that is not there. Nothing waits; the current stream decides from which pool memory comes."""

from collections.abc import Callable
from typing import Any

import torch

from tb_memplugin.torch_fit.storages import MemoryLog

CudaFunction = Callable[..., Any]


class Nothing:
    """Something of CUDA, such as an event: any method may be called, and does nothing."""

    def __init__(self, *args: object, **kwargs: object) -> None: ...

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None: ...

    def elapsed_time(self, *args: object) -> float:
        return 0.0

    def query(self) -> bool:
        return True

    def record_event(self, *args: object) -> "Nothing":
        return Nothing()

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def stream_functions(log: MemoryLog, gpu: torch.device) -> dict[str, Any]:
    """Return torch.cuda's types and functions of streams and events, which set the current stream of a log."""
    known: dict[int, Nothing] = {}

    class Stream(Nothing):
        def __init__(self, *args: object, **kwargs: object) -> None:
            self.cuda_stream = self.stream_id = len(known)
            self.device, self.device_index, self.before = gpu, gpu.index, list[int]()
            known[self.stream_id] = self

        def __enter__(self) -> "Stream":
            self.before.append(log.stream)
            log.stream = self.stream_id
            return self

        def __exit__(self, *error: object) -> None:
            log.stream = self.before.pop()

    def set_stream(stream: Any) -> None:
        if stream is not None:
            log.stream = stream.stream_id

    default = Stream()
    return {
        "Stream": Stream, "Event": Nothing, "device": Nothing, "device_index": Nothing, "set_stream": set_stream,
        "stream": lambda stream: Nothing() if stream is None else stream,
        "default_stream": lambda *args, **kwargs: default,
        "current_stream": lambda *args, **kwargs: known[log.stream],
    }  # fmt: skip
