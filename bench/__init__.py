"""The benchmarks: every figure beside a peer or the physical limit, measured in the same run."""
