"""An OpenClaw device: a key pair, and the signed greeting of protocol 4."""

import base64
import contextlib
import hashlib
import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from websockets.sync.client import ClientConnection, connect

ROLE, SCOPES = "operator", ["operator.read", "operator.write"]


@dataclass
class Device:
    """`client` and `mode` are the kind of program that the device claims to be."""

    client: str = "openclaw-ios"
    mode: str = "ui"
    key: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    @property
    def public(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    @property
    def id(self) -> str:
        return hashlib.sha256(self.public).hexdigest()

    def greeting(self, token: str, challenge: Mapping[str, Any]) -> dict[str, Any]:
        """Return the signed greeting; `token` is signed too, so it must be the one that the gateway receives."""
        nonce, signed_at = challenge["nonce"], challenge["ts"]
        parts = ["v2", self.id, self.client, self.mode, ROLE, ",".join(SCOPES), str(signed_at), token, nonce]
        return {
            "minProtocol": 4,
            "maxProtocol": 4,
            "client": {"id": self.client, "version": "1.0", "platform": "ios", "mode": self.mode},
            "role": ROLE,
            "scopes": SCOPES,
            "auth": {"token": token} if token else {},
            "device": {
                "id": self.id,
                "publicKey": _base64url(self.public),
                "signature": _base64url(self.key.sign("|".join(parts).encode())),
                "signedAt": signed_at,
                "nonce": nonce,
            },
        }


@contextlib.contextmanager
def open_websocket(host: str, address: tuple[str, int], **headers: str) -> Iterator[ClientConnection]:
    """Open a WebSocket to an agent's own address."""
    with socket.create_connection(address, 10) as raw:
        url = f"ws://{host}:{address[1]}/"
        with connect(
            url, sock=raw, additional_headers=headers, open_timeout=20, max_size=1 << 24, proxy=None
        ) as opened:
            yield opened


def greet(opened: ClientConnection, device: Device, token: str) -> dict[str, Any]:
    """Send the device's greeting; return the gateway's response."""
    while (event := json.loads(opened.recv(20))).get("event") != "connect.challenge":
        pass
    greeting = device.greeting(token, event["payload"])
    return call(opened, "connect", greeting)


def call(opened: ClientConnection, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    opened.send(json.dumps({"type": "req", "id": method, "method": method, "params": params}))
    while (answer := json.loads(opened.recv(20))).get("id") != method:
        pass
    return answer


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
