"""A program of an agent that answers as its caller says: `python3 hostile_program.py PORT`. Standard library only.

`/plan` takes an answer and returns its number, `/raw?N` sends it (`&close` ends the connection), `/seen` returns all
request heads so far. `/big?N` sends N bytes, `/flood` endless ones, `/ticks` a stream of events, `/ws` is a WebSocket
that greets. Everything else is an echo, with size and CRC of the body.
"""

import asyncio
import json
import sys
import zlib

_PIECE = bytes(65536)
_SEEN: list[str] = []
_PLANNED: list[bytes] = []


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *lines = head[:-4].split("\r\n")
    _, target, _ = line.split(" ")
    return head, target, {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in lines)}


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str], *, keep: bool) -> tuple[int, int, bytes]:
    """Return size and CRC of a body, and all of it or its beginning."""
    size = crc = 0
    begin = b""
    left = int(headers.get("content-length", "0"))
    is_chunked = "transfer-encoding" in headers
    while True:
        if is_chunked and not left and not (left := int(await reader.readuntil(b"\r\n"), 16)):
            await reader.readuntil(b"\r\n")
            return size, crc, begin
        if not left:
            return size, crc, begin
        piece = await reader.read(min(left, len(_PIECE)))
        if not piece:
            raise ConnectionResetError
        left, size, crc = left - len(piece), size + len(piece), zlib.crc32(piece, crc)
        begin += piece if keep or not begin else b""
        if is_chunked and not left:
            await reader.readexactly(2)


async def _send(writer: asyncio.StreamWriter, size: float) -> None:
    while size > 0:
        writer.write(_PIECE[: int(min(size, len(_PIECE)))])
        size -= len(_PIECE)
        await writer.drain()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        head, target, headers = await _read_head(reader)
        path, _, query = target.partition("?")
        if path == "/seen":
            body = json.dumps(_SEEN).encode()
        else:
            _SEEN.append(head)
            if path == "/ws":
                writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
                writer.write(b"\x81\x05hello")
                await reader.read()
                return
            if path == "/ticks":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
                while not writer.is_closing():
                    writer.write(b"data: tick\n\n")
                    await writer.drain()
                    await asyncio.sleep(0.02)
            if path == "/flood":
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                await _send(writer, float("inf"))
            size, crc, body = await _read_body(reader, headers, keep=path == "/plan")
            if path == "/raw":
                number, _, close = query.partition("&")
                writer.write(_PLANNED[int(number)])
                await writer.drain()
                if close:
                    return
                continue
            if path == "/plan":
                _PLANNED.append(body)
                body = str(len(_PLANNED) - 1).encode()
            elif path == "/big":
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\n" % query.encode())
                await _send(writer, int(query))
                continue
            else:
                told = {"head": head, "size": size, "crc": crc, "body": body[:1000].decode("latin-1")}
                body = json.dumps(told).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        writer.write(b"" if head.startswith("HEAD ") else body)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await _answer(reader, writer)
    except (ConnectionError, asyncio.IncompleteReadError, ValueError):
        pass
    finally:
        writer.close()


async def _main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", int(sys.argv[1]), limit=1 << 20)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
