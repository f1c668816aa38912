"""Large JSON is parsed in other processes with the same result, while the event loop goes on."""

import asyncio
import json

import pytest

from roost.storage.compat.service import INLINE_LIMIT, InvalidLegacyRequest, JsonParserPool, TooManyJsonPins

PADDING = " " * INLINE_LIMIT
"""Behind any JSON, makes it one that is not read here."""
NAMES = ("content", "about", "how")


@pytest.mark.parametrize("padding", ["", PADDING])
@pytest.mark.parametrize(
    ("given", "content"),
    [
        ('{"a": 1, "b": [null, true]}', b'{"a":1,"b":[null,true]}'),
        ('{"content": []}', b"[]"),
        ('{"content": null}', b"null"),
        ('{"content": "text"}', b'"text"'),
        ('{"\u00fc": "\u6f22"}', '{"\u00fc":"\u6f22"}'.encode()),
    ],
)
async def test_json_is_read_without_spaces(given: str, content: bytes, padding: str) -> None:
    assert await JsonParserPool().extract("acme", (given + padding).encode(), *NAMES) == ([None, None], content)


@pytest.mark.parametrize("padding", ["", PADDING])
async def test_fields_beside_the_content_are_extracted(padding: str) -> None:
    body = json.dumps({"about": {"name": "\u00fc"}, "how": "{}", "content": 1}) + padding
    assert await JsonParserPool().extract("acme", body.encode(), *NAMES) == ([{"name": "\u00fc"}, "{}"], b"1")


@pytest.mark.parametrize("padding", ["", PADDING])
@pytest.mark.parametrize(
    "given",
    [
        "",
        "{",
        "[]",
        "1",
        '{"a": 1}x',
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": "\\ud800"}',
        '{"a": ' + "[" * 99_999,
    ],
)
async def test_malformed_json_objects_are_refused(given: str, padding: str) -> None:
    with pytest.raises(InvalidLegacyRequest):
        await JsonParserPool().extract("acme", (given + padding).encode(), *NAMES)


async def test_fields_beside_the_content_are_limited() -> None:
    with pytest.raises(InvalidLegacyRequest):
        await JsonParserPool().extract("acme", json.dumps({"about": "x" * 500_000, "content": 1}).encode(), *NAMES)


async def test_others_go_on_while_nothing_but_brackets_is_read() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(others())
    await asyncio.sleep(0)
    body = b'{"a":[' + b"[]," * 50_000 + b"[]]}"
    assert (await JsonParserPool().extract("acme", body, *NAMES))[1] == body
    task.cancel()
    assert turns > 10


async def test_not_too_many_wait() -> None:
    pool, body = JsonParserPool(waiting=2), ("{}" + PADDING).encode()
    results = await asyncio.gather(*(pool.extract("acme", body, *NAMES) for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results].count(TooManyJsonPins) == 1
    both = await asyncio.gather(*(pool.extract(tenant, body, *NAMES) for tenant in ("acme", "other") for _ in range(2)))
    assert [content for _, content in both] == [b"{}"] * 4  # each tenant has a limit of its own
    assert (await pool.extract("acme", body, *NAMES))[1] == b"{}"


async def test_who_does_not_wait_any_more_takes_no_place() -> None:
    pool = JsonParserPool(waiting=1)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await pool.extract("acme", b'{"a":[' + b"[]," * 1_000_000 + b"[]]}", *NAMES)
    assert (await pool.extract("acme", ("{}" + PADDING).encode(), *NAMES))[1] == b"{}"
