"""Old paths become current paths, and nothing else does."""

import json
from typing import Any

import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from roost.http.stack.path_rewrite import PathRewriteMiddleware
from tests.http.asgi import call

FILE = "00000000-0000-4000-8000-000000000000"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    content = {"path": scope["path"], "data": [{"mapped_cid": "\u00fc", "created_at": None}]}
    await JSONResponse(content)(scope, receive, send)


async def answer(method: str, path: str) -> Any:
    sent = await call(PathRewriteMiddleware(echo), path, method=method)
    assert int(sent.headers["content-length"]) == len(sent.body)
    return json.loads(sent.body)


@pytest.mark.parametrize(
    ("method", "old", "current"),
    [
        ("GET", "/v3/files", "/v3/files/private"),
        ("PUT", f"/v3/files/{FILE}", f"/v3/files/private/{FILE}"),
        ("POST", "/v3/files/groups", "/v3/groups/private"),
        ("DELETE", "/v3/files/groups/g/ids/f", "/v3/groups/private/g/ids/f"),
        ("PUT", "/v3/files/swap/c", "/v3/files/private/swap/c"),
        ("POST", "/v3/ipfs/signature/c", "/v3/files/public/signature/c"),
        ("GET", "/v3/ipfs/gateways", "/v3/gateways"),
        ("GET", "/v3/ipfs/gateway_analytics_top", "/v3/analytics/gateways/top"),
    ],
)
async def test_an_old_path_is_rewritten(method: str, old: str, current: str) -> None:
    assert (await answer(method, old))["path"] == current


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v3/files"),  # an upload
        ("POST", f"/v3/files/{FILE}"),  # an upload to a signed URL
        ("DELETE", f"/v3/files/{FILE}/{'0' * 64}"),  # the end of an upload in parts
        ("GET", "/v3/files/limits"),
        ("GET", "/v3/files/private"),
        ("POST", "/v3/ipfs/gateways"),
        ("GET", "/v3/ipfs/gateways/exists/x"),
        ("GET", "/v3/filesystem"),
        ("GET", "/v0/agents"),
        ("GET", "/"),
    ],
)
async def test_other_paths_stay(method: str, path: str) -> None:
    assert (await answer(method, path))["path"] == path


async def test_fields_are_renamed_where_the_row_says_so() -> None:
    assert (await answer("GET", "/v3/ipfs/swap/c"))["data"] == [{"mappedCid": "\u00fc", "createdAt": None}]
    assert (await answer("GET", "/v3/files/swap/c"))["data"] == [{"mapped_cid": "\u00fc", "created_at": None}]
