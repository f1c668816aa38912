"""JSON that is to be pinned is read: here where it is small, else in a process of its own, a few at once."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from roost.core.subprocess_worker import run_worker
from roost.storage.legacy.compact import compact
from roost.storage.legacy.errors import InvalidLegacyRequest, TooManyJsonPins

HERE = 64 * 1024
"""Bytes that are read in some hundredths of a second, whatever they are."""
_PROGRAM = Path(__file__).with_name("compact.py")
_PROCESSES = 2
_SAID = 256 * 1024
"""Bytes of what is said beside the content: more than can be kept of it."""


class JsonParserPool:
    def __init__(self, waiting: int = 16) -> None:
        """waiting: bodies, with those that are read."""
        self._places = asyncio.Semaphore(_PROCESSES)
        self._most = waiting
        self._waiting = 0

    async def read(self, body: bytes, member: str, *beside: str) -> tuple[Sequence[object], bytes]:
        """What an object has `beside` its content, and that as JSON without spaces: what is below `member` or else all.

        Raises InvalidRequest, TooManyAtOnce.
        """
        if len(body) <= HERE:
            return _read(body, member, *beside)
        if self._waiting >= self._most:
            raise TooManyJsonPins(retry_after=1)
        self._waiting += 1
        try:
            async with self._places:
                said, _, content = (await run_worker(body, _PROGRAM, member, *beside)).partition(b"\n")
        finally:
            self._waiting -= 1
        if not said or len(said) > _SAID:
            raise InvalidLegacyRequest
        return json.loads(said), content


def _read(body: bytes, member: str, *beside: str) -> tuple[Sequence[object], bytes]:
    try:
        return compact(body, member, *beside)
    except (ValueError, RecursionError):
        raise InvalidLegacyRequest from None
