"""Answer on one Unix socket as the wardens of many containers would, whose agents do nothing: `PATH`."""

import asyncio
import json
import struct
import sys
from pathlib import Path
from typing import Any

from roost.core.machine.unix_socket import listen_unix, serve_unix

_PROCESS = {"state": "running", "pid": 2, "exitCode": None, "startedAt": 1.0, "restarts": 0}
_REPLIES: dict[str, dict[str, Any]] = {
    "ping": {"pid": 1, "uptime": 1.0},
    "processes": {"processes": {"gateway": _PROCESS}},
    "read": {"ok": False, "error": "fileMissing", "message": "nothing is stored"},
}
_LAST = b'{"ok": true, "size": 0, "code": 0, "timedOut": false, "truncated": false}'
_HEALTHY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        op = json.loads(await reader.readline())["op"]
        writer.write(json.dumps({"ok": True} | _REPLIES.get(op, {})).encode() + b"\n")
        if op == "dial":
            await reader.readuntil(b"\r\n\r\n")
            writer.write(_HEALTHY)
        elif op not in {"start", "stop", "watch", *_REPLIES}:
            writer.write(struct.pack("!cI", b"x", len(_LAST)) + _LAST)
        while await reader.read(1 << 16):
            pass
    except (ConnectionError, EOFError):
        return
    finally:
        writer.close()


async def _serve(path: Path) -> None:
    server = await serve_unix(listen_unix(path), _answer)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
