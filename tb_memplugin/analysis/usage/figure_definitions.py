"""Definitions of the figures on the page: a label, and one sentence for each. docs/glossary.md lists them all."""

from typing import NamedTuple


class Figure(NamedTuple):
    """A number of bytes with its label and definition; `bytes` is None where it is unknown."""

    key: str
    label: str
    bytes: int | None
    text: str


# By key: the label of a figure, and the sentence that its tooltip shows.
Definitions = dict[str, tuple[str, str]]
PROGRAM: Definitions = {
    "live_peak": ("Peak", "The most bytes that buffers need at one position."),
    "reserved": (
        "Reserved",
        "The memory that the program requests from the device: the sum of its buffer allocations. Compilers compare it "
        "with their limit.",
    ),
    "capacity": ("Limit", "What a program may reserve on this device."),
    "reported_peak": (
        "JAX total peak",
        "JAX's peak_memory_in_bytes, computed for this file over all memories: on TPU, the sum of HBM, VMEM and host. "
        "Temporaries count only where the compiler's trace contains them.",
    ),
    "arguments": (
        "Arguments",
        "The program's inputs, which are live from start to end; a donated argument is an output too.",
    ),
    "outputs": ("Outputs", "The program's results, donated arguments included."),
    "temporaries": ("Temporaries", "Memory that the program reserves for intermediate results while it runs."),
    "constants": ("Constants", "Values that are compiled into the program."),
    "padding": ("Padding", "Bytes at the peak without data: buffers are rounded up to the tiles of their layout."),
    "fragmentation": (
        "Fragmentation",
        "Temporary memory that is reserved but not live at the peak: holes that no buffer fits in.",
    ),
}
ALLOCATOR: Definitions = {
    "live_peak": ("Peak", "The most bytes in use at one event, heap and stack together."),
    "capacity": ("Limit", "The size of this memory: in use, reserved and free together."),
    "reported_peak": (
        "Lifetime peak",
        "The most bytes in use since the allocator was created, as it reports; it may predate the profile.",
    ),
    "heap": ("Heap at the peak", "Allocated memory at the peak."),
    "stack": ("Stack at the peak", "Memory reserved for running programs at the peak."),
    "free": ("Free at the peak", "Free memory at the peak."),
    "fragmented": ("Fragmented at the peak", "Free memory outside the largest free block."),
    "largest_free": ("Largest free block", "The largest request that could have succeeded at the peak."),
    "allocated": ("Allocated", "The sum of all allocations in the profile."),
    "freed": ("Freed", "The sum of all frees in the profile, frees of earlier memory included."),
    "freed_before": ("Freed from before", "Frees of memory that was allocated before the profile started."),
    "live_before": ("Live before", "Memory in use when the profile started; its allocation site is unknown."),
    "never_freed": ("Not freed", "Memory allocated in the profile that is still live when it ends."),
}
TORCH: Definitions = {
    "live_peak": ("Peak", "The most bytes of blocks in use at one event: memory_allocated()."),
    "reserved": ("Reserved at most", "The most memory that the allocator held from the device: memory_reserved()."),
    "cached": ("Cached at the peak", "Memory that is reserved from the device and free; only this process can use it."),
    "largest_free": (
        "Largest free block",
        "The largest free block at the peak; a larger request takes new memory from the device.",
    ),
    "rounding": ("Rounding at the peak", "Bytes of blocks in use beyond what was requested."),
    "pending": (
        "Waiting at the peak",
        "Memory that the program freed, kept until other streams have finished with it (record_stream).",
    ),
    "allocated": ("Allocated", "The sum of all allocations in the trace."),
    "freed": ("Freed", "The sum of all frees in the trace."),
    "within_reach": (
        "Within reach",
        "Memory that this process could use when it last ran out: its reserved memory and the device's free memory.",
    ),
    "possible_state": (
        "Possible state",
        "Live at the peak, of unknown role, and older than the trace, in blocks of the size of gradients or of the "
        "optimizer's state: parameters, gradients or state of earlier steps.",
    ),
    "live_before": ("Older than the trace", "Memory in use when the trace starts; its allocation site is unknown."),
    "never_freed": ("Not freed", "Memory allocated in the trace that is still live when it ends."),
}
DEVICE_PROFILE: Definitions = {
    "live_peak": ("Profiled", "Buffers and executables together: all that a device profile contains."),
    "buffers": ("Buffers", "Memory of live arrays; the temporaries of a running program are not in a device profile."),
    "executables": ("Executables", "Code of compiled programs."),
    "in_use": ("In use", "Memory in use when the profile was saved, as the device's allocator reported it."),
    "unexplained": (
        "Not in the profile",
        "Bytes in use by neither an array nor an executable: running programs, and the runtime itself.",
    ),
    "reported_peak": ("Lifetime peak", "The most bytes in use since the process started."),
    "capacity": ("Limit", "The memory of this device that the allocator may use."),
}
WATCH: Definitions = {
    "live_peak": ("Peak", "The most bytes in use at a sample, or between two samples by the allocator's own counter."),
    "capacity": ("Limit", "The memory that the allocator, or on the host the job's cgroup, may use."),
    "reported_peak": (
        "Lifetime peak",
        "The most bytes in use since the process started, as the allocator reports; it may predate the first sample.",
    ),
    "last": ("In use last", "Bytes in use at the last sample."),
    **{key: ALLOCATOR[key] for key in ("free", "largest_free", "fragmented")},
    "reserved": ("Reserved at most", "The most memory that PyTorch's allocator held from the device."),
}
OUT_OF_MEMORY: Definitions = {
    "live_peak": ("In use, or Needed", "Memory in use, or needed by the program, according to the text."),
    "capacity": ("Limit", "The size of this memory."),
    "asked": ("Requested", "The size of the request that failed."),
    "missing": ("Shortfall", "Bytes that must be freed for the request to fit, if all free memory were one block."),
    "free": ("Free", "Free memory when the request failed."),
    "largest_free": ("Largest free block", "The largest request that would have succeeded."),
    "fragmented": ("Fragmented", "Free memory outside the largest free block."),
    "listed": ("Listed", "The sum of the buffers that the text lists."),
    "padding": ("Padding", "Bytes without data: buffers are rounded up to the tiles of their layout."),
    "reported_peak": ("Lifetime peak", "The most bytes in use since the allocator was created, as it reports."),
}
GLOSSARY = {
    "Figures of a program": PROGRAM,
    "Figures of an allocator": ALLOCATOR,
    "Figures of a PyTorch recording": TORCH,
    "Figures of a device profile": DEVICE_PROFILE,
    "Figures of a watched device": WATCH,
    "Figures of an out-of-memory error": OUT_OF_MEMORY,
}


def define(definitions: Definitions, key: str, size: int | None, label: str = "") -> Figure:
    """Return a figure with its definition; `label` replaces the usual one."""
    usual, text = definitions[key]
    return Figure(key, label or usual, size, text)
