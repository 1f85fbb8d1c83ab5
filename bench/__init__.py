"""The benchmarks: how fast ralph is, compared with something measured in the same run on the same machine."""
