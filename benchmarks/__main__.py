"""The benchmarks of what other tools do not do, run one after another by `python -m benchmarks`."""

from benchmarks import advice, compare, device_profile, export_rows, roles, timeline_frames, tree_positions

ALL = (device_profile, compare, roles, export_rows, tree_positions, advice, timeline_frames)

if __name__ == "__main__":
    for benchmark in ALL:
        print(f"\n{benchmark.__name__}: {(benchmark.__doc__ or '').splitlines()[0]}")
        benchmark.main()
