"""Benchmarks: each figure is compared with a peer or a physical limit that is measured in the same run."""
