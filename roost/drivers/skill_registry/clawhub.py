"""Client of registries that speak the protocol of ClawHub, as other servers of Roost do."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx2

from roost.core.machine.network_advice import describe_network_error
from roost.core.problem import Problem
from roost.core.sanitize import sanitize_line
from roost.drivers.model.json_access import as_list, as_object, as_string
from roost.drivers.skill_registry.contract import (
    ARCHIVE_LIMIT,
    RESULTS_LIMIT,
    FoundSkill,
    RegistryUnavailable,
    SkillRegistry,
)

_ANSWER_LIMIT = 1024**2
_ANSWER_SECONDS, _DOWNLOAD_SECONDS = 5.0, 30.0
_TEXT_LIMIT, _NAME_LIMIT = 1024, 128
_MISSING = frozenset({404, 410})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "roost"}
Transport = Callable[[], httpx2.AsyncBaseTransport]


class ClawHubRegistry(SkillRegistry):
    def __init__(self, url: str, transport: Transport) -> None:
        """`transport` creates the transport to the registry, which may refuse with a Problem."""
        self._url = url
        self._transport = transport

    @property
    def url(self) -> str:
        return self._url

    async def search(self, query: str, limit: int) -> Sequence[FoundSkill]:
        shown = min(limit, RESULTS_LIMIT)
        if query:
            answer = await self._get_object("/api/v1/search", {"q": query, "limit": str(shown)})
            rows = as_list((answer or {}).get("results"))
        else:
            answer = await self._get_object("/api/v1/skills", {"limit": str(shown), "sort": "createdAt"})
            rows = as_list((answer or {}).get("items"))
        return [found for row in rows[:shown] if (found := _parse_row(as_object(row)))]

    async def find(self, slug: str, owner: str | None) -> FoundSkill | None:
        answer = await self._get_object(f"/api/v1/skills/{slug}", {"ownerHandle": owner} if owner else {})
        if answer is None:
            return None
        row = {**as_object(answer.get("skill")), "version": as_object(answer.get("latestVersion")).get("version")}
        return _parse_row({**row, "owner": answer.get("owner")})

    async def download(self, slug: str, owner: str | None, version: str) -> bytes | None:
        query = {"slug": slug, "version": version, **({"ownerHandle": owner} if owner else {})}
        return await self._get("/api/v1/download", query, ARCHIVE_LIMIT, _DOWNLOAD_SECONDS)

    async def _get_object(self, path: str, query: Mapping[str, str]) -> Mapping[str, Any] | None:
        content = await self._get(path, query, _ANSWER_LIMIT, _ANSWER_SECONDS)
        if content is None:
            return None
        try:
            return as_object(httpx2.Response(200, content=content).json())
        except (ValueError, RecursionError):
            raise RegistryUnavailable("the answer is not JSON") from None

    async def _get(self, path: str, query: Mapping[str, str], limit: int, seconds: float) -> bytes | None:
        """Return the body of an answer; None if it is 404. Redirects are not followed."""
        try:
            async with (
                asyncio.timeout(seconds),
                httpx2.AsyncClient(transport=self._transport(), headers=_HEADERS, trust_env=False) as client,
                client.stream("GET", f"{self._url}{path}", params=query) as response,
            ):
                if response.status_code in _MISSING:
                    return None
                if not response.is_success:
                    raise RegistryUnavailable(f"it answered {response.status_code}")
                return await _read_bounded(response, limit)
        except TimeoutError:
            raise RegistryUnavailable(f"no answer within {seconds:g} seconds") from None
        except Problem as problem:
            raise RegistryUnavailable(problem.message) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
            raise RegistryUnavailable(describe_network_error(error)) from None


async def _read_bounded(response: httpx2.Response, limit: int) -> bytes:
    content = bytearray()
    async for piece in response.aiter_raw():
        content += piece
        if len(content) > limit:
            raise RegistryUnavailable(f"the answer is larger than {limit} bytes")
    return bytes(content)


def _parse_row(row: Mapping[str, Any]) -> FoundSkill | None:
    """Return a skill of a list or of a search; None if it cannot be named."""
    slug = as_string(row.get("slug"))
    owner = as_string(as_object(row.get("owner")).get("handle")) or as_string(row.get("ownerHandle"))
    version = row.get("version") or as_object(row.get("latestVersion")).get("version")
    if not slug or len(slug) > _NAME_LIMIT or len(owner) > _NAME_LIMIT:
        return None
    return FoundSkill(
        slug=slug,
        owner=owner.removeprefix("@").lower() or None,
        name=_shown(row.get("displayName"), _NAME_LIMIT) or slug,
        description=_shown(row.get("summary"), _TEXT_LIMIT) or _shown(row.get("description"), _TEXT_LIMIT),
        version=_shown(version, _NAME_LIMIT) or None,
        updated_at=_parse_time(row.get("updatedAt")),
    )


def _shown(value: Any, limit: int) -> str:
    return sanitize_line(as_string(value)[:limit])


def _parse_time(value: Any) -> datetime:
    """Return a time of milliseconds since 1970; that beginning for anything else."""
    try:
        return datetime.fromtimestamp(float(value) / 1000, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return _EPOCH
