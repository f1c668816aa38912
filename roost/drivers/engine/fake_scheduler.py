"""The scheduler of the fake engine: part of the program `fake_gateway.py`, in a container, standard library only.

It keeps its tasks in one file, sets a task's next time before it runs it, and runs each in a thread of its own. Two
words in a task's text steer it for tests: `wait N` takes N seconds, `fail` fails.
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

_LOOK_SECONDS = 0.05
_RUNS = 200
_DAYS = 8 * 366
_NAMES = {name.lower(): str(number) for number, name in enumerate(calendar.month_abbr) if name} | {
    name.lower(): str((number + 1) % 7) for number, name in enumerate(calendar.day_abbr)
}


class FakeScheduler:
    """`ask` has the agent answer a text; `path` is where the tasks are kept."""

    def __init__(self, path: Path, ask: Callable[[str], str]) -> None:
        self._path = path
        self._ask = ask
        self._lock = threading.Lock()
        kept: Json = json.loads(path.read_text()) if path.exists() else {"tasks": {}, "runs": {}}
        self._tasks: dict[str, Json] = kept["tasks"]
        self._runs: dict[str, list[Json]] = kept["runs"]
        for run in (run for runs in self._runs.values() for run in runs if run["status"] == "running"):
            run["status"] = "unknown"  # the gateway was killed in the middle of it
        for task in self._tasks.values():
            task["running"] = False
        threading.Thread(target=self._keep_time, daemon=True).start()

    def handle(self, method: str, path: str, body: bytes) -> tuple[int, Json]:
        """Status and answer of a request below `/tasks`."""
        _, _, task_id, *verb = [*path.split("/"), ""][:4]
        with self._lock:
            if task_id and task_id not in self._tasks:
                return 404, {"error": "no such task"}
            try:
                return self._do(method, task_id, verb[0] if verb else "", json.loads(body or b"{}"))
            except (ValueError, KeyError, TypeError) as error:
                return 400, {"error": str(error)}

    def _do(self, method: str, task_id: str, verb: str, body: Json) -> tuple[int, Json]:
        key = f"{method} {'task' if task_id else 'tasks'} {verb}".rstrip()
        routes: dict[str, Callable[[], Json]] = {
            "GET tasks": lambda: {"tasks": list(self._tasks.values())},
            "POST tasks": lambda: self._put({"id": uuid.uuid4().hex, "createdAt": _now(), "running": False}, body),
            "GET task": lambda: self._tasks[task_id],
            "PATCH task": lambda: self._put(self._tasks[task_id], body),
            "DELETE task": lambda: self._drop(task_id),
            "GET task runs": lambda: {"runs": self._runs[task_id][::-1]},
            "POST task run": lambda: self._begin(task_id),
        }
        if key == "POST task run" and self._tasks[task_id]["running"]:
            return 409, {"error": "it is running"}
        return (200, routes[key]()) if key in routes else (405, {"error": "no such verb"})

    def _put(self, task: Json, change: Json) -> Json:
        changed = {**task, **change}
        changed["nextRunAt"] = next_time(changed["schedule"], time.time()) if changed["enabled"] else None
        if changed["enabled"] and changed["nextRunAt"] is None and not {"enabled", "schedule"}.isdisjoint(change):
            raise ValueError("it has no time left")
        self._tasks[task["id"]] = changed
        self._runs.setdefault(task["id"], [])
        self._save()
        return changed

    def _drop(self, task_id: str) -> Json:
        del self._tasks[task_id], self._runs[task_id]
        self._save()
        return {}

    def _keep_time(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            with self._lock:
                for task in list(self._tasks.values()):
                    planned = task.get("nextRunAt")
                    if not task["enabled"] or planned is None or planned > _now():
                        continue
                    task["nextRunAt"] = next_time(task["schedule"], time.time())
                    task["enabled"] = task["nextRunAt"] is not None
                    if not task["running"]:
                        self._begin(task["id"])

    def _begin(self, task_id: str) -> Json:
        run: Json = {"id": uuid.uuid4().hex, "status": "running", "startedAt": _now()}
        self._runs[task_id] = [*self._runs[task_id], run][-_RUNS:]
        self._tasks[task_id] |= {"running": True, "lastRunAt": run["startedAt"]}
        self._save()
        threading.Thread(target=self._run, args=(task_id, run), daemon=True).start()
        return {}

    def _run(self, task_id: str, run: Json) -> None:
        payload = self._tasks[task_id]["payload"]
        begin = time.monotonic()
        try:
            outcome: Json = {"status": "ok", "summary": self._act(payload.get("message") or payload.get("text"))}
        except Exception as error:  # noqa: BLE001 - a run that fails is an outcome
            outcome = {"status": "error", "error": str(error)}
        with self._lock:
            run |= {**outcome, "durationMs": round((time.monotonic() - begin) * 1000)}
            if task_id in self._tasks:
                ended = {"running": False, "lastStatus": outcome["status"], "lastError": outcome.get("error")}
                self._tasks[task_id] |= ended
            self._save()

    def _act(self, text: str) -> str:
        if wait := re.fullmatch(r"wait ([\d.]+)", text):
            time.sleep(float(wait[1]))
        if text == "fail":
            raise RuntimeError("it was told to fail")
        return self._ask(text)

    def _save(self) -> None:
        beside = self._path.with_suffix(".new")
        with beside.open("w") as file:
            json.dump({"tasks": self._tasks, "runs": self._runs}, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)


def next_time(schedule: Json, now: float) -> int | None:
    """In milliseconds since 1970."""
    if schedule["kind"] == "at":
        at = datetime.fromisoformat(schedule["at"]).timestamp()
        return round(at * 1000) if at > now else None
    if schedule["kind"] == "every":
        return round(now * 1000) + int(schedule["everyMs"])
    return _following(schedule["expr"], ZoneInfo(schedule.get("tz", "UTC")), now)


def _following(expr: str, zone: ZoneInfo, now: float) -> int | None:
    """What an hour that comes twice repeats is left out: the first pass was it."""
    minute, hour, day, month, weekday = expr.lower().split()
    minutes, hours, months = _field(minute, 0, 59), _field(hour, 0, 23), _field(month, 1, 12)
    begin = datetime.fromtimestamp(now, zone).date()
    for days in range(_DAYS):
        on = begin + timedelta(days=days)
        if on.month not in months or not _falls_on(on, day, weekday):
            continue
        for shown in (datetime(on.year, on.month, on.day, h, m, tzinfo=zone) for h in hours for m in minutes):
            if (moment := shown.astimezone(UTC).timestamp()) > now:
                return round(moment * 1000)
    return None


def _falls_on(on: date, day: str, weekday: str) -> bool:
    in_month = on.day in _field(day, 1, 31)
    in_week = on.isoweekday() % 7 in {number % 7 for number in _field(weekday, 0, 7)}
    return in_month and in_week if "*" in (day[0], weekday[0]) else in_month or in_week


def _field(field: str, low: int, high: int) -> list[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, dash, last = re.sub(r"[a-z]+", lambda name: _NAMES[name[0]], span).partition("-")
        begin = low if first == "*" else int(first)
        end = int(last) if dash else (high if first == "*" or step else begin)
        found |= set(range(begin, end + 1, int(step or "1")))
    return sorted(found)


def _now() -> int:
    return round(time.time() * 1000)
