import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

NOTHING: int
ALLOC: int
FREE: int
SEGMENT_ALLOC: int
SEGMENT_FREE: int
SEGMENT_MAP: int
SEGMENT_UNMAP: int

def block_sizes(
    kind: U8,
    address: I64,
    size: I64,
    live: I64,
    segment: I64,
    segment_size: I64,
    expandable: U8,
    max_split: int,
) -> tuple[I64, int]: ...
def free_requests(is_request: U8, place: I64, row_place: I64, free_event: I64) -> I64: ...
