"""Pages of other origins may upload, and nothing else."""

import pytest
from starlette.types import Receive, Scope, Send

from roost.web.cors import CorsMiddleware
from tests.http.asgi import call, routed

ID = "00000000-0000-4000-8000-000000000000"
PAGE = ("origin", "https://page.example.org")


async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 403, "headers": []})
    await send({"type": "http.response.body", "body": b"no"})


@pytest.mark.parametrize("path", ["/v3/files", f"/v3/files/{ID}", f"/v3/files/{ID}/{'a1' * 32}"])
async def test_a_page_may_ask_and_send(path: str) -> None:
    asking = [PAGE, ("access-control-request-method", "PATCH"), ("access-control-request-headers", "upload-offset")]
    asked = await call(CorsMiddleware(app), path, method="OPTIONS", headers=asking, state=routed(path, "OPTIONS"))
    assert asked.status == 200
    assert asked.headers["access-control-allow-origin"] == "*"
    assert "PATCH" in asked.headers["access-control-allow-methods"]
    assert "upload-offset" in asked.headers["access-control-allow-headers"]
    sent = await call(CorsMiddleware(app), path, method="PATCH", headers=[PAGE], state=routed(path, "PATCH"))
    assert sent.status == 403
    assert sent.headers["access-control-allow-origin"] == "*"
    for name in ("upload-cid", "X-Error-Code", "X-Error-Field"):
        assert name in sent.headers["access-control-expose-headers"]
    assert "access-control-allow-credentials" not in sent.headers


@pytest.mark.parametrize("path", ["/v3/files/sign", f"/v3/files/private/{ID}", "/v3/groups/private", "/v0/agents", "/"])
async def test_nothing_else_is_open_to_pages(path: str) -> None:
    sent = await call(CorsMiddleware(app), path, method="POST", headers=[PAGE], state=routed(path, "POST"))
    assert "access-control-allow-origin" not in sent.headers
