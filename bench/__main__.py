"""Run the benchmarks: `make bench` for all but the long one, git-large; `python -m bench NAME...` for some.

Names: containers, agents, skills, templates, hub, api, records, scans, logs, events, edge, domains, tasks, snapshots,
git, git-large, priority, storage, uploads, gateway, payments, vectors, terminal, dashboard, cli.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench import (
    agents,
    api,
    cli,
    containers,
    dashboard,
    domains,
    edge,
    events,
    gateway,
    git_access,
    hub,
    logs,
    payments,
    priority,
    records,
    scans,
    skills,
    snapshots,
    storage,
    tasks,
    templates,
    terminal,
    uploads,
    vectors,
)
from bench.table import Row, report_rows

_BENCHMARKS: Mapping[str, Callable[[Path], Sequence[Row]]] = {
    "containers": containers.run,
    "agents": agents.run,
    "skills": skills.run,
    "templates": templates.run,
    "hub": hub.run,
    "api": api.run,
    "records": records.run,
    "scans": scans.run,
    "logs": logs.run,
    "events": events.run,
    "edge": edge.run,
    "domains": domains.run,
    "tasks": tasks.run,
    "snapshots": snapshots.run,
    "git": git_access.run,
    "git-large": git_access.run_large,
    "priority": priority.run,
    "storage": storage.run,
    "uploads": uploads.run,
    "gateway": gateway.run,
    "payments": payments.run,
    "vectors": vectors.run,
    "terminal": terminal.run,
    "dashboard": dashboard.run,
    "cli": cli.run,
}
_LONG = frozenset({"git-large"})
"""Benchmarks of some minutes, which run by name only."""


def main() -> None:
    names = sys.argv[1:] or [name for name in _BENCHMARKS if name not in _LONG]
    if unknown := set(names) - _BENCHMARKS.keys():
        sys.exit(f"unknown benchmarks: {', '.join(sorted(unknown))}; available: {', '.join(_BENCHMARKS)}")
    rows: list[Row] = []
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="roost-bench-") as folder:
            Path(folder).chmod(0o755)
            rows += _BENCHMARKS[name](Path(folder))
    report_rows(rows)


main()
