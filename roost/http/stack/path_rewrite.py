"""Rewrite old paths of supported clients to the current ones, before routing."""

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roost.storage.compat.paths import PATH_REWRITES, PathRewrite


class PathRewriteMiddleware:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._rows: dict[str, list[tuple[Any, PathRewrite]]] = defaultdict(list)
        for row in PATH_REWRITES:
            self._rows[_family(row.path)].append((compile_path(row.path)[0], row))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            send = self._rewrite(scope, send)
        await self._app(scope, receive, send)

    def _rewrite(self, scope: Scope, send: Send) -> Send:
        for pattern, row in self._rows.get(_family(scope["path"]), ()):
            if (match := pattern.match(scope["path"])) is None:
                continue
            if scope["method"] not in row.methods:
                scope.setdefault("state", {}).setdefault("rewritten_methods", set()).update(row.methods)
            else:
                scope["path"] = row.current_path(match.groupdict())
                scope["raw_path"] = quote(scope["path"]).encode()
                return _RenamingSend(send, row.response_names) if row.response_names else send
        return send


class _RenamingSend:
    """ASGI `send` that renames fields of a JSON response, which the API sends as one message."""

    def __init__(self, send: Send, names: Mapping[str, str]) -> None:
        self._send = send
        self._names = names
        self._start: Message = {}

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        content = self._rename(json.loads(message["body"]))
        body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
        MutableHeaders(scope=self._start)["Content-Length"] = str(len(body))
        await self._send(self._start)
        await self._send({**message, "body": body})

    def _rename(self, value: Any) -> Any:
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {self._names.get(name, name): self._rename(field) for name, field in fields.items()}
        return [self._rename(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _family(path: str) -> str:
    return "/".join(path.split("/", 3)[:3])
