"""Answer as the wardens of many containers would, whose agents do nothing: on one Unix socket at `PATH`, or as pods.

`PORT CERTIFICATE` answers over TLS at that port of all addresses, by the bridge of each server that connects.
"""

import asyncio
import base64
import json
import struct
import sys
from pathlib import Path
from typing import Any

import uvloop

from roost.core.machine.unix_socket import listen_unix, serve_unix
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.bridge import BridgeEnd
from roost.drivers.runtime.tls_carrier import listen_tls_carriers
from roost.http.server.server import raise_descriptor_limit

_PROCESS = {"state": "running", "pid": 2, "exitCode": None, "startedAt": 1.0, "restarts": 0}
_REPLIES: dict[str, dict[str, Any]] = {
    "ping": {"pid": 1, "uptime": 1.0},
    "processes": {"processes": {"gateway": _PROCESS}},
    "read": {"ok": False, "error": "fileMissing", "message": "nothing is stored"},
}
_LAST = b'{"ok": true, "size": 0, "code": 0, "timedOut": false, "truncated": false}'
_SIZES = b"4096\t.\n4096\t/home/agent\n"
"""Output of the command that measures files, and of every other one."""
_HEALTHY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


def _frame(kind: bytes, data: bytes) -> bytes:
    return struct.pack("!cI", kind, len(data)) + data


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        if not (line := await reader.readline()):  # a stream that only proves the bridge
            return
        op = json.loads(line)["op"]
        writer.write(json.dumps({"ok": True} | _REPLIES.get(op, {})).encode() + b"\n")
        if op == "dial":
            await reader.readuntil(b"\r\n\r\n")
            writer.write(_HEALTHY)
        elif op == "exec":
            writer.write(_frame(b"o", _SIZES) + _frame(b"x", _LAST))
        elif op not in {"start", "stop", "watch", *_REPLIES}:
            writer.write(_frame(b"x", _LAST))
        while await reader.read(1 << 16):
            pass
    except (ConnectionError, EOFError):
        return
    finally:
        writer.close()


async def _serve_bridges(port: int, certificate: str) -> None:
    raise_descriptor_limit()
    server = await listen_tls_carriers("0.0.0.0", port, Sensitive(certificate), lambda: BridgeEnd(_answer))
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


async def _serve(path: Path) -> None:
    server = await serve_unix(listen_unix(path), _answer)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        uvloop.run(_serve_bridges(int(sys.argv[1]), base64.b64decode(sys.argv[2]).decode()))
    else:
        asyncio.run(_serve(Path(sys.argv[1])))
