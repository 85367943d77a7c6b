"""Limits of what a recording contains, and codes of caveats and of reasons for missing data.

Codes are part of the JSON contract: programs may rely on them. The label of a code is its meaning in one sentence.
"""

from typing import NamedTuple

from tb_memplugin.model.kinds import Labeled


class CaveatCode(Labeled):
    """Something that a file lacks, or that had to be reconstructed."""

    # Of several sources
    ADDRESS_TAKEN = "address_taken", "An allocation is at an address in use; the earlier one is considered freed."
    NO_ADDRESS = "no_address", "Events have no possible address, so their allocations and frees cannot be paired."
    IMPOSSIBLE_BYTES = "impossible_bytes", "Sizes or counts are below 0 or above 1 PiB and are ignored."

    # Compiled programs
    LIFETIMES_REBUILT = "lifetimes_rebuilt", "The compiler's trace lacks buffers; their lifetimes are reconstructed."
    NO_SCHEDULE = "no_schedule", "The program has no schedule; instructions are assumed to run in the listed order."
    UNKNOWN_BUFFERS = "unknown_buffers", "Buffers are assigned memory but not described; they are live throughout."
    UNKNOWN_INSTRUCTIONS = "unknown_instructions", "Buffers refer to missing instructions; they are live throughout."
    INCONSISTENT_EVENTS = "inconsistent_events", "Events of the compiler's trace are inconsistent and ignored."
    REUSED_EARLY = "reused_early", "Buffers are overwritten before their last use; they end where they are overwritten."
    TOTAL_DIFFERS = "total_differs", "XLA's own memory usage report has another total than the buffer allocations."
    NO_LIVE_RANGES = "no_live_ranges", "The text has no live ranges, so the peak is uncertain."
    NO_MODULE_TEXT = "no_module_text", "The text has no instructions: operations and source lines are unknown."
    ASSIGNMENT_ASSUMED = "assignment_assumed", "The text has no buffer assignment; it is computed by XLA's rules."
    SCHEDULE_DIFFERS = "schedule_differs", "XLA's own live ranges cover another number of instructions."

    # Allocator events of a profile
    LIVE_BEFORE = "live_before", "Memory was allocated before the recording started; its allocation site is unknown."
    FREED_MORE = "freed_more", "More bytes were freed than were in use when the recording started."
    UNNAMED = "unnamed", "Events name neither an allocator nor a device; they are assigned to one memory."
    IN_USE_MISSING = "in_use_missing", "Events do not report bytes in use; they are computed from the events' sizes."
    FREE_MISSING = "free_missing", "Events do not report free bytes; the last reported value is used."
    IN_USE_DIFFERS = "in_use_differs", "Bytes in use change by more or less than an event's size: events are missing."
    SIZE_MISSING = "size_missing", "Events do not report a size; they count as 0 bytes."
    FRAGMENTATION_MISSING = "fragmentation_missing", "Events report no fragmentation between 0 and 1."
    OUT_OF_ORDER = ("out_of_order", "Events are earlier than the one before on their thread; they are sorted by time.")
    UNKNOWN_STATS = "unknown_stats", "Events have stats that this version does not read."
    MORE_THAN_IN_USE = (
        "more_than_in_use",
        "At the peak, live allocations add up to more than the bytes in use: events contradict each other.",
    )
    UNKNOWN_DTYPE = "unknown_dtype", "Events have an unknown data type."
    DEVICE_DAMAGED = "device_damaged", "The device's own executions cannot be read; the host's calls are shown."

    # Device profiles
    SIZE_UNKNOWN = "size_unknown", "The runtime does not know the size of some allocations; they count as 0 bytes."
    BROKEN_SAMPLES = "broken_samples", "Samples lack a value for one of the profile's types and are left out."
    UNKNOWN_FRAMES = "unknown_frames", "Frames of call stacks are missing from the file; they are shown as unnamed."

    # PyTorch snapshots and profiles
    NO_TRACE = "no_trace", "The snapshot has no trace of events: it shows the moment at which it was saved."
    OLDER_THAN_TRACE = "older_than_trace", "Allocations predate the trace; they are live from before its first event."
    NO_TIME = "no_time", "The trace has no times, as before PyTorch 2.2; event numbers replace them."
    NOT_IN_SEGMENTS = "not_in_segments", "Allocations that the trace does not free are not among the final blocks."
    ESTIMATED_SIZE = "estimated_size", "Blocks were freed before their size was recorded; their size is a lower bound."
    TIME_BACKWARDS = "time_backwards", "Events are earlier than the previous event; they are shown at its time."
    UNKNOWN_ACTION = "unknown_action", "Events have an action that this version does not know."
    NO_FREES = "no_frees", "The trace has no frees; recording them may have been switched off."
    NO_IDENTITY = ("no_identity", "Tensors are not identified; lifetimes of equal size and role may be swapped.")
    FREE_WITHOUT_ALLOCATION = "free_without_allocation", "Frees have no matching allocation and are left out."
    SUMS_ONLY = "sums_only", "The file has sums without tensors; each row is the sum of one role."

    # Out-of-memory errors
    ONLY_END_READ = "only_end_read", "Only the end of the long text was read."
    TEXT_CUT = "text_cut", "The list of buffers in the text is cut off."
    NOTHING_LISTED = "nothing_listed", "The text lists no buffers."
    NOT_LISTED = "not_listed", "The text lists only the largest buffers."
    IMPOSSIBLE_SIZES = "impossible_sizes", "The listed sizes add up to more than any memory and are left out."
    REPEATED = "repeated", "The text has the same failure several times, of several workers or attempts."
    KILLED = "killed", "The system ended the process, and the text does not contain how much memory was in use."
    REMATERIALIZED = ("rematerialized", "The compiler recomputed values to save memory, and still missed its limit.")
    ARGUMENTS_UNKNOWN = "arguments_unknown", "The compiler did not know the size of the arguments."
    OUTPUTS_NOT_SHARED = "outputs_not_shared", "Outputs do not reuse the memory of arguments."
    OCCUPANCY = "occupancy", "The allocator's occupancy line shows how much of its memory is in use."
    RESERVED_UNALLOCATED = "reserved_unallocated", "PyTorch reserves memory without tensors in it; it counts as free."
    LIMITED = "limited", "PyTorch's memory is limited by set_per_process_memory_fraction."

    # Counters of devices over time
    SAMPLED = "sampled", "Counters are read at intervals; what happens in between is known by the peak counter at most."
    LIVE_ARRAYS = "live_arrays", "The device has no counters; the bytes of JAX's live arrays replace them."


class NoEventsCode(Labeled):
    """The reason why a profile has no allocator events."""

    CPU_BACKEND = "cpu_backend", "The profile has no accelerator, and JAX's CPU backend does not log allocations."
    TRACER_LEVEL = "tracer_level", "The host tracer ran below the level at which allocators log events."
    NO_DEVICE_WORK = "no_device_work", "The devices ran nothing during the profile."
    NO_ALLOCATOR_EVENTS = "no_allocator_events", "No allocator logged an event; the reason is unknown."


class Caveat(NamedTuple):
    """Something that is missing from the file or had to be reconstructed. `bytes`: how much it affects, if known."""

    code: CaveatCode
    text: str
    bytes: int | None = None
