"""Parse JSON uploads: small bodies in this process, large ones in a bounded pool of worker processes."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from roost.core.machine.subprocess_worker import run_worker
from roost.storage.compat.errors import InvalidLegacyRequest, TooManyJsonPins
from roost.storage.compat.json_extractor import extract_json

INLINE_LIMIT = 64 * 1024
"""Bytes of JSON of any structure that can be parsed within some hundredths of a second."""
_PROGRAM = Path(__file__).with_name("json_extractor.py")
_PROCESSES = 2
_METADATA_LIMIT = 256 * 1024
"""Maximum bytes of the other members as JSON; more than the metadata of a file can have."""


class JsonParserPool:
    def __init__(self, waiting: int = 16) -> None:
        """Limit the number of large bodies of each tenant, parsed or queued, to `waiting`."""
        self._workers = asyncio.Semaphore(_PROCESSES)
        self._limit = waiting
        self._waiting = Counter[str]()

    async def extract(self, tenant_id: str, body: bytes, member: str, *others: str) -> tuple[Sequence[object], bytes]:
        """Return the members `others` of an object, and `member` (or the whole object) as compact JSON.

        Raises InvalidLegacyRequest, TooManyJsonPins.
        """
        if len(body) <= INLINE_LIMIT:
            return _extract_inline(body, member, *others)
        if self._waiting[tenant_id] >= self._limit:
            raise TooManyJsonPins(retry_after=1)
        self._waiting[tenant_id] += 1
        try:
            async with self._workers:
                metadata, _, content = (await run_worker(body, _PROGRAM, member, *others)).partition(b"\n")
        finally:
            self._waiting[tenant_id] -= 1
            if not self._waiting[tenant_id]:
                del self._waiting[tenant_id]
        if not metadata or len(metadata) > _METADATA_LIMIT:
            raise InvalidLegacyRequest
        return json.loads(metadata), content


def _extract_inline(body: bytes, member: str, *others: str) -> tuple[Sequence[object], bytes]:
    try:
        return extract_json(body, member, *others)
    except (ValueError, RecursionError):
        raise InvalidLegacyRequest from None
