"""Streams that chaos interrupts: events come once each, and no process or slot of a limit is left behind."""

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

import httpx2 as httpx
from websockets.exceptions import WebSocketException

from roost.agents.chat.service import MAX_CHATS
from roost.warden.terminal import MAX_TERMINALS
from tests.chaos.actions import Action
from tests.journeys.server_process import until

_FILES, _CHANGES = 8, 12
_LAST_EVENT = "SELECT s.last_number FROM event_streams s JOIN agents a ON a.tenant_id = s.tenant_id WHERE a.id = :agent"
_LINES = 200
_OUTPUT = """
echo {mark}; for i in $(seq {lines}); do echo {mark} $i; [ $((i % 50)) -gt 0 ] || sleep 0.05; done
read answer; echo "$answer {mark}"
"""


class Follow(Action):
    """Stores and deletes files while a client follows the events."""

    victims: ClassVar[Sequence[str]] = ("server",)

    def prepare(self) -> None:
        self._first = self._last_number()
        self._events: list[dict[str, Any]] = []
        self._done: list[tuple[str, str]] = []  # types and files
        self._is_over = False

    def run(self) -> bool:
        with ThreadPoolExecutor(1) as threads:
            following = threads.submit(self._try_to_follow)
            try:
                self._change_files()
            finally:
                self._is_over = True
                following.result()
        return True

    def check(self) -> None:
        last = self._last_number()
        self._receive(until_now=True)
        numbers = [int(event["id"]) for event in self._events]
        assert numbers == list(range(self._first + 1, self._first + 1 + len(numbers))), f"lost or repeated: {numbers}"
        assert self._first + len(numbers) >= last, "the stream ends before the last event"
        seen = Counter(self._list_changes())
        assert set(seen.values()) <= {1}, f"a change has two events: {seen}"
        assert set(self._done) <= set(seen), "a change has no event"
        self.deployment.drop_files()

    def _change_files(self) -> None:
        for number in range(_FILES):
            file = self.deployment.upload(self._chance.randbytes(100))["id"]
            self._done.append(("file.added", file))
            if number % 2:
                self.deployment.get("DELETE", f"/v3/files/private/{file}")
                self._done.append(("file.deleted", file))

    def _try_to_follow(self) -> None:
        try:
            self._receive()
        except httpx.HTTPError:
            return  # the server was killed

    def _receive(self, *, until_now: bool = False) -> None:
        """Receive the events after the last one, until those of all changes are there, or there is no further one."""
        last = self._events[-1]["id"] if self._events else str(self._first)
        with self.deployment.stream("/events", **{"Last-Event-ID": last}) as lines:
            for event in _parse_events(lines):
                if event is not None:
                    self._events.append(event)
                elif until_now or self._is_over:
                    return
                if not until_now and len(self._list_changes()) == _CHANGES:
                    return

    def _list_changes(self) -> Sequence[tuple[str, str]]:
        """Return types and files of the events so far."""
        files = (event for event in self._events if event["type"].startswith("file."))
        return [(event["type"], event["subject"]["id"]) for event in files]

    def _last_number(self) -> int:
        ((number,),) = self.deployment.rows(_LAST_EVENT, agent=self.deployment.agent_id)
        return number


class Chat(Action):
    """Has three chats with the agent."""

    def prepare(self) -> None:
        return

    def run(self) -> bool:
        return self._chat(3, "/slow 6")

    def check(self) -> None:
        assert self._chat(MAX_CHATS, "/say ok"), "a chat that has ended still counts"

    def _chat(self, count: int, text: str) -> bool:
        with ThreadPoolExecutor(count) as threads:
            return all(threads.map(self._send, [text] * count))

    def _send(self, text: str) -> bool:
        body = {"messages": [{"role": "user", "content": text}]}
        answer = self.deployment.send("POST", f"/agents/{self.deployment.agent_id}/chat", json=body).text
        return answer.endswith("data: [DONE]\n\n") and '"error"' not in answer


class Command(Action):
    """Runs a command that lasts for a moment."""

    def prepare(self) -> None:
        self._mark = _new_mark(self._chance)

    def run(self) -> bool:
        path = f"/agents/{self.deployment.agent_id}/console/exec"
        body = {"command": f"echo {self._mark}; sleep 0.3; echo {self._mark}"}
        answer = self.deployment.send("POST", path, json=body)
        return answer.is_success and answer.json()["stdout"] == f"{self._mark}\n" * 2

    def check(self) -> None:
        until(lambda: not _find_processes(self._mark), 20)


class Terminal(Action):
    """Reads a terminal to its end; after a crash of the server, a client continues where it was."""

    def prepare(self) -> None:
        self._mark = _new_mark(self._chance)
        self._command = _OUTPUT.format(mark=self._mark, lines=_LINES)
        lines = [self._mark, *(f"{self._mark} {number}" for number in range(1, _LINES + 1))]
        self._expected = "".join(f"{line}\r\n" for line in [*lines, "yes", f"yes {self._mark}"]).encode()
        self._output = b""
        self._session = ""
        self._exit_code: int | None = None
        self._containers = self.deployment.containers()

    def run(self) -> bool:
        try:
            self._use(command=self._command)
        except (WebSocketException, OSError):
            return False
        return self._is_complete()

    def check(self) -> None:
        agent_id = self.deployment.agent_id
        is_same = self.deployment.containers()[agent_id] == self._containers[agent_id]
        if self._session and self._exit_code is None and is_same:
            self._use(session=self._session, after=len(self._output))
            assert self._is_complete(), f"output is lost or repeated: {self._output[-200:]!r} {self._end}"
        with ExitStack() as stack:  # a session without a client must give its slot to others
            path = f"/agents/{agent_id}/console/stream"
            for _ in range(MAX_TERMINALS):
                socket = stack.enter_context(self.deployment.open_socket(path, command="read answer"))
                assert "session" in json.loads(socket.recv()), "a terminal that has ended still counts"
        until(lambda: not _find_processes(self._mark), 20)

    def _use(self, **query: Any) -> None:
        """Read the output, answer when the command asks, and read its exit code."""
        path = f"/agents/{self.deployment.agent_id}/console/stream"
        with self.deployment.open_socket(path, **query) as socket:
            for message in socket:
                self._receive(message)
                if self._output.count(b"\r\n") == _LINES + 1:
                    socket.send(b"yes\n")
            self._end = (self._exit_code, socket.close_code, socket.close_reason)

    def _receive(self, message: str | bytes) -> None:
        if isinstance(message, bytes):
            assert int.from_bytes(message[:8]) == len(self._output), "output is lost or repeated"
            self._output += message[8:]
            return
        told = json.loads(message)
        self._session = told.get("session", self._session)
        self._exit_code = told.get("exitCode")

    def _is_complete(self) -> bool:
        return (self._output, self._exit_code) == (self._expected, 0)


def _parse_events(lines: Iterator[str]) -> Iterator[dict[str, Any] | None]:
    """Yield the events of a stream, and None for each heartbeat."""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "data":
            yield json.loads(value)
        elif (name, value) == ("", "heartbeat"):
            yield None


def _new_mark(chance: random.Random) -> str:
    return f"mark-{chance.randrange(1 << 60)}"


def _find_processes(mark: str) -> Sequence[Path]:
    """Return the processes of containers with a mark in their arguments."""
    found: list[Path] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(path)
        except OSError:
            continue  # it has ended
    return found
