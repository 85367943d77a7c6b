"""A best-fit heap, as compilers use to place temporary buffers."""

from bisect import bisect_left, insort

ALIGNMENT = 512  # bytes, of buffers in TPU programs


class BestFitHeap:
    """A heap that grows as needed and never overlaps live buffers. `size` is its largest extent, with free blocks."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # (size, offset), smallest first
        self._by_start: dict[int, int] = {}  # offset of a free block -> its size
        self._by_end: dict[int, int] = {}  # end of a free block -> its size

    def allocate(self, size: int) -> int:
        """Return an offset for `size` bytes: in the smallest free block that fits, else at the end of the heap."""
        size = align(size)
        index = bisect_left(self._free, (size, 0))
        if index == len(self._free):
            return self._grow(size)
        block, offset = self._free[index]
        self._remove(offset, block)
        if block > size:
            self._insert(offset + size, block - size)
        return offset

    def free(self, offset: int, size: int) -> None:
        """Free the bytes, and merge them with the adjacent free blocks."""
        size = align(size)
        if before := self._by_end.get(offset, 0):
            self._remove(offset - before, before)
        if after := self._by_start.get(offset + size, 0):
            self._remove(offset + size, after)
        self._insert(offset - before, before + size + after)

    def _grow(self, size: int) -> int:
        """Extend the last free block to `size` bytes, and return its offset."""
        last = self._by_end.get(self.size, 0)
        offset = self.size - last
        if last:
            self._remove(offset, last)
        self.size = offset + size
        return offset

    def _insert(self, offset: int, size: int) -> None:
        insort(self._free, (size, offset))
        self._by_start[offset] = self._by_end[offset + size] = size

    def _remove(self, offset: int, size: int) -> None:
        del self._free[bisect_left(self._free, (size, offset))]
        del self._by_start[offset], self._by_end[offset + size]


def align(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
