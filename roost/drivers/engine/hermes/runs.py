"""Program that prints a job's runs as JSON: `python3 -I runs.py HOME JOB LIMIT`, or the running jobs for JOB `*`.

Hermes stores runs in a database and answers in files, and has no route for either. The agent can write both, so they
are read in its container and not by the server. Standard library only.
"""

import contextlib
import json
import sqlite3
import sys
from datetime import datetime
from pathlib import Path

_MAX_SUMMARY = 2000
_RUNS = """SELECT id, status, claimed_at, started_at, finished_at, substr(error, 1, 2000) AS error
FROM executions WHERE job_id = ? ORDER BY claimed_at DESC, id DESC LIMIT ?"""
_RUNNING = "SELECT DISTINCT job_id AS id FROM executions WHERE status IN ('claimed', 'running') LIMIT ?"


def main(home: str, job: str, limit: str) -> None:
    query = (_RUNNING, (int(limit),)) if job == "*" else (_RUNS, (job, int(limit)))
    rows = _rows(Path(home, "cron", "executions.db"), *query)
    if job != "*":
        answers = sorted(Path(home, "cron", "output", job).glob("*.md"))
        for row in rows:
            row["summary"] = _summary(row, answers)
    sys.stdout.write(json.dumps(rows))


def _rows(database: Path, query: str, parameters: tuple[int | str, ...]) -> list[dict[str, str | None]]:
    """Return the rows of a query; none before the first run, while the database or its table is missing."""
    if not database.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=rw", uri=True, timeout=5)) as connection:
        connection.row_factory = sqlite3.Row
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'executions'").fetchone():
            return []
        return [dict(row) for row in connection.execute(query, parameters)]


def _summary(row: dict[str, str | None], answers: list[Path]) -> str | None:
    """Return the beginning of the latest answer written during the run."""
    if row["status"] != "completed" or not row["finished_at"] or not row["started_at"]:
        return None
    begin, end = (
        datetime.fromisoformat(row[key] or "").strftime("%Y-%m-%d_%H-%M-%S") for key in ("started_at", "finished_at")
    )
    for answer in reversed(answers):
        if begin <= answer.stem <= end:
            return answer.read_text(errors="replace").rpartition("## Response\n\n")[2].strip()[:_MAX_SUMMARY]
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
