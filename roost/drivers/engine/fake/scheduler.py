"""The scheduler of the fake engine, part of the program `gateway.py`: in a container, standard library only.

It stores its tasks in one file, in OpenClaw's form. It sets a task's next time before running it, and runs each in its
own thread. For tests, the text `wait N` makes a run take N seconds, and `fail` makes it fail.
"""

import calendar
import json
import os
import re
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

Json = dict[str, Any]

_POLL_SECONDS = 0.05
_MAX_RUNS = 200
_MAX_DAYS = 8 * 366
_NAMES = {name.lower(): str(number) for number, name in enumerate(calendar.month_abbr) if name} | {
    name.lower(): str((number + 1) % 7) for number, name in enumerate(calendar.day_abbr)
}


class FakeScheduler:
    """Runs the tasks stored in `path`; `ask` returns the agent's answer to a text."""

    def __init__(self, path: Path, ask: Callable[[str], str]) -> None:
        self._path = path
        self._ask = ask
        self._lock = threading.Lock()
        stored: Json = json.loads(path.read_text()) if path.exists() else {"tasks": {}, "runs": {}}
        self._tasks: dict[str, Json] = stored["tasks"]
        self._runs: dict[str, list[Json]] = stored["runs"]
        for run in (run for runs in self._runs.values() for run in runs if run["status"] == "running"):
            run["status"] = "unknown"  # the gateway was killed in the middle of it
        for task in self._tasks.values():
            task["state"]["runningAtMs"] = None
        threading.Thread(target=self._run_due_tasks, daemon=True).start()

    def handle(self, method: str, path: str, body: bytes) -> tuple[int, Json]:
        """Return status and body of the response to a request below `/tasks`."""
        _, _, task_id, *verb = [*path.split("/"), ""][:4]
        with self._lock:
            if task_id and task_id not in self._tasks:
                return 404, {"error": "no such task"}
            try:
                return self._dispatch(method, task_id, verb[0] if verb else "", json.loads(body or b"{}"))
            except (ValueError, KeyError, TypeError) as error:
                return 400, {"error": str(error)}

    def _dispatch(self, method: str, task_id: str, verb: str, body: Json) -> tuple[int, Json]:
        key = f"{method} {'task' if task_id else 'tasks'} {verb}".rstrip()
        routes: dict[str, Callable[[], Json]] = {
            "GET tasks": lambda: {"tasks": list(self._tasks.values())},
            "POST tasks": lambda: self._store({"id": uuid.uuid4().hex, "createdAtMs": _now(), "state": {}}, body),
            "GET task": lambda: self._tasks[task_id],
            "PATCH task": lambda: self._store(self._tasks[task_id], body),
            "DELETE task": lambda: self._delete(task_id),
            "GET task runs": lambda: {"runs": self._runs[task_id][::-1]},
            "POST task run": lambda: self._start_run(task_id),
        }
        if key == "POST task run" and self._tasks[task_id]["state"].get("runningAtMs"):
            return 409, {"error": "it is running"}
        return (200, routes[key]()) if key in routes else (405, {"error": "no such verb"})

    def _store(self, task: Json, change: Json) -> Json:
        changed = {**task, **change}
        planned = next_time(changed["schedule"], time.time()) if changed["enabled"] else None
        if changed["enabled"] and planned is None and not {"enabled", "schedule"}.isdisjoint(change):
            raise ValueError("the task has no next time")
        changed["state"] = {**task["state"], "nextRunAtMs": planned}
        self._tasks[task["id"]] = changed
        self._runs.setdefault(task["id"], [])
        self._save()
        return changed

    def _delete(self, task_id: str) -> Json:
        del self._tasks[task_id], self._runs[task_id]
        self._save()
        return {}

    def _run_due_tasks(self) -> None:
        while True:
            time.sleep(_POLL_SECONDS)
            with self._lock:
                for task in list(self._tasks.values()):
                    planned = task["state"]["nextRunAtMs"]
                    if not task["enabled"] or planned is None or planned > _now():
                        continue
                    task["state"]["nextRunAtMs"] = next_time(task["schedule"], time.time())
                    task["enabled"] = task["state"]["nextRunAtMs"] is not None
                    if not task["state"].get("runningAtMs"):
                        self._start_run(task["id"])

    def _start_run(self, task_id: str) -> Json:
        run: Json = {"runId": uuid.uuid4().hex, "status": "running", "runAtMs": _now()}
        self._runs[task_id] = [*self._runs[task_id], run][-_MAX_RUNS:]
        task = self._tasks[task_id]
        task["state"] = {**task["state"], "runningAtMs": run["runAtMs"], "lastRunAtMs": run["runAtMs"]}
        self._save()
        threading.Thread(target=self._run, args=(task_id, run), daemon=True).start()
        return {}

    def _run(self, task_id: str, run: Json) -> None:
        payload = self._tasks[task_id]["payload"]
        begin = time.monotonic()
        try:
            outcome: Json = {"status": "ok", "summary": self._execute(payload.get("message") or payload.get("text"))}
        except Exception as error:  # noqa: BLE001 - a failed run is recorded
            outcome = {"status": "error", "error": str(error)}
        with self._lock:
            run |= {**outcome, "durationMs": round((time.monotonic() - begin) * 1000)}
            if task_id in self._tasks:
                task = self._tasks[task_id]
                ended = {"runningAtMs": None, "lastRunStatus": outcome["status"], "lastError": outcome.get("error")}
                task["state"] = {**task["state"], **ended}
            self._save()

    def _execute(self, text: str) -> str:
        if wait := re.fullmatch(r"wait ([\d.]+)", text):
            time.sleep(float(wait[1]))
        if text == "fail":
            raise RuntimeError("it was told to fail")
        return self._ask(text)

    def _save(self) -> None:
        new = self._path.with_suffix(".new")
        with new.open("w") as file:
            json.dump({"tasks": self._tasks, "runs": self._runs}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)


def next_time(schedule: Json, now: float) -> int | None:
    """Return the next time in milliseconds since 1970; None if there is none."""
    if schedule["kind"] == "at":
        # In the whole milliseconds by which tasks become due, or a task due within this one would run twice.
        planned = int(datetime.fromisoformat(schedule["at"]).timestamp() * 1000)
        return planned if planned > int(now * 1000) else None
    if schedule["kind"] == "every":
        return round(now * 1000) + int(schedule["everyMs"])
    return _next_cron_time(schedule["expr"], ZoneInfo(schedule.get("tz", "UTC")), now)


def _next_cron_time(expr: str, zone: ZoneInfo, now: float) -> int | None:
    """Return the next time of a cron expression; in an hour that a clock change repeats, only the first pass counts."""
    minute, hour, day, month, weekday = expr.lower().split()
    minutes, hours, months = _expand_field(minute, 0, 59), _expand_field(hour, 0, 23), _expand_field(month, 1, 12)
    begin = datetime.fromtimestamp(now, zone).date()
    for days in range(_MAX_DAYS):
        on = begin + timedelta(days=days)
        if on.month not in months or not _matches_day(on, day, weekday):
            continue
        for local in (datetime(on.year, on.month, on.day, h, m, tzinfo=zone) for h in hours for m in minutes):
            if (moment := local.astimezone(UTC).timestamp()) > now:
                return round(moment * 1000)
    return None


def _matches_day(on: date, day: str, weekday: str) -> bool:
    in_month = on.day in _expand_field(day, 1, 31)
    in_week = on.isoweekday() % 7 in {number % 7 for number in _expand_field(weekday, 0, 7)}
    return in_month and in_week if "*" in (day[0], weekday[0]) else in_month or in_week


def _expand_field(field: str, low: int, high: int) -> list[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, dash, last = re.sub(r"[a-z]+", lambda name: _NAMES[name[0]], span).partition("-")
        begin = low if first == "*" else int(first)
        end = int(last) if dash else (high if first == "*" or step else begin)
        found |= set(range(begin, end + 1, int(step or "1")))
    return sorted(found)


def _now() -> int:
    return int(time.time() * 1000)
