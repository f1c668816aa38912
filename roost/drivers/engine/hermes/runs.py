"""Prints a job's runs as JSON: `python3 -I runs.py HOME JOB LIMIT`, in a container, standard library only.

Hermes keeps them in a database and the answers in files beside it, and has no route for either. Both are an agent's
to write, so they are read where the agent lives and not by the server. JOB `*` asks for the jobs that are running.
"""

import contextlib
import json
import sqlite3
import sys
from datetime import datetime
from pathlib import Path

_SUMMARY = 2000
_RUNS = """SELECT id, status, claimed_at, started_at, finished_at, substr(error, 1, 2000) AS error
FROM executions WHERE job_id = ? ORDER BY claimed_at DESC, id DESC LIMIT ?"""
_RUNNING = "SELECT DISTINCT job_id AS id FROM executions WHERE status IN ('claimed', 'running') LIMIT ?"


def main(home: str, job: str, limit: str) -> None:
    asked = (_RUNNING, (int(limit),)) if job == "*" else (_RUNS, (job, int(limit)))
    rows = _rows(Path(home, "cron", "executions.db"), *asked)
    if job != "*":
        answers = sorted(Path(home, "cron", "output", job).glob("*.md"))
        for row in rows:
            row["summary"] = _summary(row, answers)
    sys.stdout.write(json.dumps(rows))


def _rows(database: Path, query: str, parameters: tuple[int | str, ...]) -> list[dict[str, str | None]]:
    """None before the first run: then there is no database, or one that is being made."""
    if not database.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=rw", uri=True, timeout=5)) as connection:
        connection.row_factory = sqlite3.Row
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'executions'").fetchone():
            return []
        return [dict(row) for row in connection.execute(query, parameters)]


def _summary(row: dict[str, str | None], answers: list[Path]) -> str | None:
    """The beginning of the answer in the file that was written last before the run ended."""
    if row["status"] != "completed" or not row["finished_at"] or not row["started_at"]:
        return None
    begin, end = (
        datetime.fromisoformat(row[key] or "").strftime("%Y-%m-%d_%H-%M-%S") for key in ("started_at", "finished_at")
    )
    for answer in reversed(answers):
        if begin <= answer.stem <= end:
            return answer.read_text(errors="replace").rpartition("## Response\n\n")[2].strip()[:_SUMMARY]
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
