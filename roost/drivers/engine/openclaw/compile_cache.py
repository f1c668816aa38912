"""The compile cache of an OpenClaw version: Node's cache of compiled code, which makes later starts faster.

Node uses a cache only for the same path, uid and Node version, so a gateway in an ordinary container creates it: start,
one chat with a stub model, stop. The result is unpacked as plain files only.
"""

import asyncio
import contextlib
import functools
import io
import json
import tarfile
from pathlib import Path, PurePosixPath

from roost.core import clock, ids
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import Engine, EngineFailed, EngineInstallFailed, GatewaySetup
from roost.drivers.runtime.contract import HOME, ContainerSpec, Runtime
from roost.warden_client.client import WardenClient

_CACHE = f"{HOME}/cache"
_MAX_BYTES = 256 << 20
_CHAT_SECONDS = 30.0
_REMOTE_CLIENT = "192.0.0.8"  # the dummy address of RFC 7600
_MODEL, _MODEL_PORT = "none", 8799
_CHUNK = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]}
_RESPONSE = (
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    f"data: {json.dumps({'id': '1', 'object': 'chat.completion.chunk', 'created': 1, 'model': _MODEL, **_CHUNK})}\n\n"
    "data: [DONE]\n\n"
).encode()


async def build_cache(engine: Engine, version: str, runtime: Runtime) -> bytes:
    """Create the cache in a temporary container and return it as a tar. Raises Problem."""
    agent_id = f"cache-{ids.new_host_label()}"
    spec = ContainerSpec(agent_id, engine.require(version), relays={_MODEL_PORT: "api"})
    warden = WardenClient(functools.partial(runtime.connect, agent_id))
    try:
        with contextlib.closing(await runtime.listen(agent_id, "api", _serve_model)):
            await runtime.start(spec)
            await _run_gateway(engine, version, warden)
        packed = await warden.exec(["tar", "-cC", _CACHE, "."], timeout=60, output_limit=_MAX_BYTES)
    finally:
        await runtime.delete(agent_id)
    if packed.exit_code or packed.truncated:
        raise EngineInstallFailed("The compile cache could not be read from its container")
    return packed.stdout


def unpack_cache(packed: bytes, path: Path) -> None:
    """Unpack plain files only, readable by all users.

    Raises EngineInstallFailed for a malformed tar, and for a path outside the folder.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            for member in archive:
                if member.isfile() and (content := archive.extractfile(member)) is not None:
                    _write(path, PurePosixPath(member.name), content.read())
    except tarfile.TarError as error:
        raise EngineInstallFailed(f"The compile cache is damaged: {error}") from error


async def _run_gateway(engine: Engine, version: str, warden: WardenClient) -> None:
    token = Sensitive(ids.new_token("cache"))
    model, nowhere = f"http://127.0.0.1:{_MODEL_PORT}/v1", "http://127.0.0.1:9"
    plan = engine.plan(version, GatewaySetup("cache", "cache", nowhere, token, model, [_MODEL], nowhere))
    for name, content in plan.files.items():
        await warden.write(name, content, root="home", mode=0o600)
    env = {**plan.env, "NODE_COMPILE_CACHE": _CACHE}
    await warden.start("gateway", plan.argv, env=env, restart=False)
    deadline = clock.monotonic_seconds() + engine.start_deadline
    while not await engine.ready(warden.dial):
        if clock.monotonic_seconds() > deadline:
            raise EngineFailed("The gateway did not answer in time")
        await asyncio.sleep(0.2)
    with contextlib.suppress(Problem, TimeoutError):
        async with asyncio.timeout(_CHAT_SECONDS):
            await _chat(engine, warden, token)
    await warden.stop("gateway")  # Node writes the cache when it exits


async def _chat(engine: Engine, warden: WardenClient, token: Sensitive[str]) -> None:
    reader, writer = await warden.dial(engine.port)
    name, value = engine.credential(token)
    body = json.dumps({"model": "openclaw", "messages": [{"role": "user", "content": "hello"}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.0\r\n{name}: {value.reveal()}\r\nContent-Type: application/json\r\n"
    head += f"X-Forwarded-For: {_REMOTE_CLIENT}\r\n"  # as our edge does
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await reader.readline()
    writer.close()


async def _serve_model(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one chat. Read the whole request first, because closing with unread data would discard the answer."""
    with contextlib.suppress(OSError, EOFError, ValueError):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
        await reader.readexactly(min(int(length or b"0"), _MAX_BYTES))
        writer.write(_RESPONSE)
        await writer.drain()
    writer.close()


def _write(path: Path, name: PurePosixPath, content: bytes) -> None:
    if name.is_absolute() or ".." in name.parts:
        raise EngineInstallFailed("The compile cache contains a path outside its folder")
    target = path / name
    target.parent.mkdir(parents=True, exist_ok=True)
    for folder in (target.parent, *target.parent.parents):
        if folder == path:
            break
        folder.chmod(0o755)
    target.write_bytes(content)
    target.chmod(0o644)
