"""Conversations of the fake engine's gateway. Runs in a container; standard library only.

The agent has one tool, `echo`: it returns its argument `text`, or fails with it if the argument `fail` is true.
"""

import json
import threading
import time
import urllib.error
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]

_ECHO = {
    "type": "function",
    "function": {"name": "echo", "description": "Returns a text.", "parameters": {"type": "object"}},
}
_MAX_STEPS = 10


class FakeConversations:
    def __init__(self, file: Path, open_chat: Callable[[Json], Any]) -> None:
        self._file = file
        self._open_chat = open_chat
        self._lock = threading.Lock()
        self._conversations: dict[str, list[Json]] = json.loads(file.read_text()) if file.exists() else {}

    def summaries(self) -> Json:
        with self._lock:
            return {
                "conversations": [
                    {"id": key, "title": entries[0]["text"], "at": entries[-1]["at"]}
                    for key, entries in self._conversations.items()
                ]
            }

    def history(self, conversation_id: str) -> Json:
        with self._lock:
            return {"entries": self._conversations.get(conversation_id, [])}

    def answer(self, conversation_id: str, text: str) -> Iterator[Json]:
        """Yield the parts of an answer; what was yielded before the generator is closed is stored."""
        self._store(conversation_id, {"role": "user", "text": text})
        messages = [
            {"role": entry["role"], "content": entry["text"]}
            for entry in self.history(conversation_id)["entries"]
            if entry["text"]
        ]
        for _ in range(_MAX_STEPS):
            words: list[str] = []
            calls: list[Json] = []
            is_over = False
            try:
                for delta in self._deltas(messages):
                    calls += delta.get("tool_calls") or []
                    if word := delta.get("content"):
                        words.append(word)
                        yield {"text": word}
                is_over = True
            finally:
                tools = [{"id": call["id"], **call["function"]} for call in calls]
                self._store(
                    conversation_id,
                    {"role": "assistant", "text": "".join(words), "tools": tools, "stopped": not is_over},
                )
            if not calls:
                return
            messages.append({"role": "assistant", "content": "".join(words) or None, "tool_calls": calls})
            for tool in tools:
                yield {"tool": tool}
                result, failed = _run(tool["arguments"])
                outcome = {"role": "tool", "id": tool["id"], "text": result, "failed": failed}
                self._store(conversation_id, outcome)
                messages.append({"role": "tool", "tool_call_id": tool["id"], "content": result})
                yield {"tool": tool, "outcome": outcome}

    def _deltas(self, messages: list[Json]) -> Iterator[Json]:
        with self._open_chat({"messages": messages, "tools": [_ECHO], "stream": True}) as response:
            for line in response:
                data = line.removeprefix(b"data:").strip()
                if data == b"[DONE]":
                    return
                if line.startswith(b"data:"):
                    chunk: Json = json.loads(data)
                    yield from (choice["delta"] for choice in chunk["choices"])
        raise urllib.error.URLError("the answer was cut off")

    def _store(self, conversation_id: str, entry: Json) -> None:
        with self._lock:
            entries = self._conversations.setdefault(conversation_id, [])
            entries.append({**entry, "entryId": str(len(entries) + 1), "at": int(time.time() * 1000)})
            new = self._file.with_suffix(".new")
            new.write_text(json.dumps(self._conversations))
            new.replace(self._file)


def _run(arguments: str) -> tuple[str, bool]:
    given = json.loads(arguments)
    return str(given.get("text", "")), given.get("fail") is True
