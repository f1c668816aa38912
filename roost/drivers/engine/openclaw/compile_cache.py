"""The code cache of one version of OpenClaw: Node keeps compiled code, so that later starts are faster.

The cache is keyed by path, uid and Node, so a gateway in an ordinary container makes it: start, one chat with a model
that says one word, stop. The result is unpacked as plain files and nothing else.
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
from roost.drivers.runtime.warden_client import WardenClient

_CACHE = f"{HOME}/cache"
_LARGEST = 256 << 20
_CHAT_SECONDS = 30.0
_ELSEWHERE = "192.0.0.8"  # RFC 7600
_MODEL, _MODEL_PORT = "none", 8799
_WORD = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]}
_ANSWER = (
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    f"data: {json.dumps({'id': '1', 'object': 'chat.completion.chunk', 'created': 1, 'model': _MODEL, **_WORD})}\n\n"
    "data: [DONE]\n\n"
).encode()


async def run(engine: Engine, version: str, runtime: Runtime) -> bytes:
    """The cache as a tar. The container and all that it wrote are gone afterwards. Raises Problem."""
    agent_id = f"bake-{ids.new_host_label()}"
    spec = ContainerSpec(agent_id, engine.require(version), relays={_MODEL_PORT: "api"})
    warden = WardenClient(functools.partial(runtime.connect, agent_id))
    try:
        with contextlib.closing(await runtime.listen(agent_id, "api", _say_one_word)):
            await runtime.start(spec)
            await _use(engine, version, warden)
        packed = await warden.exec(["tar", "-cC", _CACHE, "."], timeout=60, output_limit=_LARGEST)
    finally:
        await runtime.delete(agent_id)
    if packed.exit_code or packed.truncated:
        raise EngineInstallFailed("The code cache could not be read out of its box")
    return packed.stdout


def unpack(packed: bytes, path: Path) -> None:
    """Plain files only, readable by all. Raises EngineInstallFailed for a tar that is none or leads elsewhere."""
    try:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            for member in archive:
                if member.isfile() and (content := archive.extractfile(member)) is not None:
                    _write(path, PurePosixPath(member.name), content.read())
    except tarfile.TarError as error:
        raise EngineInstallFailed(f"The code cache is damaged: {error}") from error


async def _use(engine: Engine, version: str, warden: WardenClient) -> None:
    token = Sensitive(ids.new_token("bake"))
    model, nowhere = f"http://127.0.0.1:{_MODEL_PORT}/v1", "http://127.0.0.1:9"
    plan = engine.plan(version, GatewaySetup("bake", "bake", nowhere, token, model, [_MODEL], nowhere))
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
    await warden.stop("gateway")  # Node writes the cache as it ends


async def _chat(engine: Engine, warden: WardenClient, token: Sensitive[str]) -> None:
    reader, writer = await warden.dial(engine.port)
    name, value = engine.credential(token)
    body = json.dumps({"model": "openclaw", "messages": [{"role": "user", "content": "hello"}]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.0\r\n{name}: {value.reveal()}\r\nContent-Type: application/json\r\n"
    head += f"X-Forwarded-For: {_ELSEWHERE}\r\n"  # as it comes through our edge
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await reader.readline()
    writer.close()


async def _say_one_word(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A model for one chat. The request is read to its end, or closing would take the answer back."""
    with contextlib.suppress(OSError, EOFError, ValueError):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
        await reader.readexactly(min(int(length or b"0"), _LARGEST))
        writer.write(_ANSWER)
        await writer.drain()
    writer.close()


def _write(path: Path, name: PurePosixPath, content: bytes) -> None:
    if name.is_absolute() or ".." in name.parts:
        raise EngineInstallFailed("The code cache leads out of its folder")
    target = path / name
    target.parent.mkdir(parents=True, exist_ok=True)
    for folder in (target.parent, *target.parent.parents):
        if folder == path:
            break
        folder.chmod(0o755)
    target.write_bytes(content)
    target.chmod(0o644)
