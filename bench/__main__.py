"""Run the benchmarks: `make bench` for all but the long one, git-large; `python -m bench NAME...` for some.

Rows are printed and written to `bench/results.json` as they come; a whole run writes `docs/reference/figures.md`, too.
A benchmark that fails is a row with its reason; the others run, and the exit code is 1. Ctrl-C keeps what was measured.
"""

import sys
from collections.abc import Mapping, Sequence

from bench.figures import PAGE, RESULTS
from bench.harness import Benchmark, run_benchmarks

BENCHMARKS: Mapping[str, Benchmark] = {
    "containers": Benchmark("bench.containers:run"),
    "docker": Benchmark("bench.docker:run", deadline=1200),
    "cluster": Benchmark("bench.cluster:run"),
    "servers": Benchmark("bench.servers:run"),
    "agents": Benchmark("bench.agents:run"),
    "answers": Benchmark("bench.answers:run"),
    "crowd": Benchmark("bench.crowd:run"),
    "skills": Benchmark("bench.skills:run"),
    "templates": Benchmark("bench.templates:run"),
    "hub": Benchmark("bench.hub:run"),
    "api": Benchmark("bench.api:run"),
    "records": Benchmark("bench.records:run"),
    "scans": Benchmark("bench.scans:run"),
    "logs": Benchmark("bench.logs:run"),
    "events": Benchmark("bench.events:run"),
    "edge": Benchmark("bench.edge:run"),
    "domains": Benchmark("bench.domains:run"),
    "tasks": Benchmark("bench.tasks:run", deadline=2400),
    "snapshots": Benchmark("bench.snapshots:run", deadline=1800),
    "git": Benchmark("bench.git_access:run", deadline=1800),
    "git-large": Benchmark("bench.git_access:run_large", deadline=3600),
    "priority": Benchmark("bench.priority:run", deadline=1800),
    "storage": Benchmark("bench.storage:run"),
    "uploads": Benchmark("bench.uploads:run"),
    "gateway": Benchmark("bench.gateway:run"),
    "payments": Benchmark("bench.payments:run"),
    "vectors": Benchmark("bench.vectors:run", deadline=1800),
    "terminal": Benchmark("bench.terminal:run"),
    "dashboard": Benchmark("bench.dashboard:run"),
    "cli": Benchmark("bench.cli:run"),
    "memory": Benchmark("bench.memory:run"),
}
_LONG = frozenset({"git-large"})
"""Benchmarks of some minutes, which run by name only."""


def main(arguments: Sequence[str]) -> int:
    names = arguments or [name for name in BENCHMARKS if name not in _LONG]
    if unknown := set(names) - BENCHMARKS.keys():
        sys.exit(f"unknown benchmarks: {', '.join(sorted(unknown))}; available: {', '.join(BENCHMARKS)}")
    return run_benchmarks(names, BENCHMARKS, RESULTS, None if arguments else PAGE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
