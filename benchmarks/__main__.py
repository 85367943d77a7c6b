"""All benchmarks, run one after another by `python -m benchmarks`."""

from benchmarks import (
    advice,
    cold_first_view,
    cold_memory_profile,
    cold_snapshot,
    compare,
    device_profile,
    export_rows,
    roles,
    summary_start,
    timeline_frames,
    tree_positions,
)

ALL = (
    summary_start,
    cold_memory_profile,
    cold_first_view,
    cold_snapshot,
    device_profile,
    compare,
    roles,
    export_rows,
    tree_positions,
    advice,
    timeline_frames,
)

if __name__ == "__main__":
    for benchmark in ALL:
        print(f"\n{benchmark.__name__}: {(benchmark.__doc__ or '').splitlines()[0]}")
        benchmark.main()
