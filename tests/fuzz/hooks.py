"""Let Schemathesis find the addresses that the description names; it imports this module before it runs."""

import socket
from typing import Any

import schemathesis

_resolve = socket.getaddrinfo


def resolve_localhost(host: str | None, *more: Any, **options: Any) -> list[Any]:
    """Resolve names under `localhost` to loopback (RFC 6761, 6.3), which the C library leaves to a DNS server."""
    return _resolve("127.0.0.1" if host and host.endswith(".localhost") else host, *more, **options)


socket.getaddrinfo = resolve_localhost
schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")  # parts of uploads
schemathesis.serializer.alias("application/vnd.ipld.car", "application/octet-stream")
for service in ("upload-pack", "receive-pack"):
    schemathesis.serializer.alias(f"application/x-git-{service}-request", "application/octet-stream")
