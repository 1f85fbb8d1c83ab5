"""The benchmarks: how fast ralph is, as ratios to something measured in the same run on the same machine."""
