"""OpenClaw's configuration: read and written by its gateway over RPC, judged by its own program in the container.

The gateway shows secrets as a placeholder and puts the real values back where one returns; what it takes, it works by
within a fraction of a second. Judging takes a run of the program (about 0.8 s): its gateway judges only what it then
writes.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from roost.core import clock
from roost.core.sanitize import sanitize_lines
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.configuration import (
    OUTPUT_LIMIT,
    ConfigurationAbility,
    ConfigurationRejected,
    ConfigurationVerdict,
    ConfigurationWritten,
)
from roost.drivers.engine.contract import EngineFailed, GatewaySetup
from roost.drivers.engine.openclaw import config
from roost.drivers.engine.openclaw.rpc import OpenClawRpc, RpcRefused
from roost.drivers.model.json_access import as_list, as_object, as_string, parse_json

Json = dict[str, Any]

PLACEHOLDER = "__OPENCLAW_REDACTED__"
_CHECK_SECONDS = 60.0  # it takes 0.8 s on a machine that has them
_SET_SECONDS = 20.0
_LIVE_SECONDS = 6.0
_LOOK_AGAIN = 0.05
_CHANGED_MEANWHILE = "re-run config.get"
_TURNS = 5
_ISSUES = 40
_READ_LIMIT = 4 << 20
# sh CHECK FILE (file | -) PROGRAM... ; a text comes on standard input, and stands beside the file while it is judged,
# because what it includes is found from there.
_CHECK = """
file=$1; shift
if [ "$1" = - ]; then
    file=$(mktemp "${file%/*}/checked.XXXXXX") || exit
    trap 'rm -f "$file"' EXIT
    cat >"$file"
fi
shift
[ -f "$file" ] || exit
OPENCLAW_CONFIG_PATH=$file "$@" config validate --json
"""


class OpenClawConfiguration(ConfigurationAbility):
    """path: the file, relative to the home. program, env: how the engine's program runs in the container."""

    def __init__(self, port: int, path: str, home: str, program: Sequence[str], env: Mapping[str, str]) -> None:
        self._port = port
        self._path = path
        self._argv = ["/bin/sh", "-c", _CHECK, "check", f"{home}/{path}"]
        self._program = program
        self._env = env

    async def read(self, inside: AgentContext) -> str:
        async with OpenClawRpc.open(inside.warden.dial, self._port, inside.token) as rpc:
            raw = as_object(await rpc.call("config.get")).get("raw")
        if not isinstance(raw, str):
            raise EngineFailed("The gateway cannot read the file")
        return raw.replace(config.edge_header(inside.token), PLACEHOLDER)

    async def check(self, inside: AgentContext, text: str | None = None) -> ConfigurationVerdict:
        if text is not None:
            users = config.read(text.encode())
            if users is None:
                return ConfigurationVerdict(
                    valid=False, output="No JSON5 object of a sensible depth and size", readable=False
                )
            if config.INCLUDE in users:
                return ConfigurationVerdict(
                    valid=False, output=f"{config.INCLUDE}: only below the root, not for the whole file"
                )
        ran = await inside.warden.exec(
            [*self._argv, "file" if text is None else "-", *self._program],
            env=self._env,
            timeout=_CHECK_SECONDS,
            stdin=(text or "").encode(),
        )
        return _verdict(parse_json(ran.stdout))

    async def write(self, inside: AgentContext, setup: GatewaySetup, text: str) -> ConfigurationWritten:
        users = config.read(text.encode())
        if users is None:
            raise ConfigurationRejected
        raw = config.render(config.merge(users, setup))
        if config.read(raw) is None:
            raise ConfigurationRejected("Too large")
        before = await inside.warden.read(self._path, root="home", limit=_READ_LIMIT)
        undo = partial(inside.warden.write, self._path, before, root="home", mode=0o600)
        async with OpenClawRpc.open(inside.warden.dial, self._port, inside.token) as rpc:
            await _set(rpc, raw.decode())
            try:
                return ConfigurationWritten(await _live(rpc), undo)
            except ConfigurationRejected:
                await undo()
                raise


async def _set(rpc: OpenClawRpc, raw: str) -> None:
    """Who writes last wins: between reading the mark of the file and writing it, others may have written."""
    for turn in range(_TURNS):
        found = as_object(await rpc.call("config.get"))
        try:
            await rpc.call("config.set", {"raw": raw, "baseHash": found.get("hash")}, _SET_SECONDS)
            return
        except RpcRefused as refused:
            if _CHANGED_MEANWHILE in refused.message and turn + 1 < _TURNS:
                continue
            if refused.code == "INVALID_REQUEST":
                raise ConfigurationRejected(_shown(refused.message)) from refused
            raise


async def _live(rpc: OpenClawRpc) -> bool:
    """Whether the gateway works by the file now. Not with `gateway.reload` off, nor for what takes a restart.

    Raises Unacceptable when the gateway reads the file otherwise than what it was sent, and refuses it.
    """
    deadline = clock.monotonic_seconds() + _LIVE_SECONDS
    try:
        while clock.monotonic_seconds() < deadline:
            found = as_object(await rpc.call("config.get"))
            if found.get("valid") is False:
                raise ConfigurationRejected(_told(found.get("issues")))
            if found.get("appliedConfigHash") and found.get("appliedConfigHash") == found.get("configRevisionHash"):
                return True
            if as_object(as_object(as_object(found.get("config")).get("gateway")).get("reload")).get("mode") == "off":
                return False
            await asyncio.sleep(_LOOK_AGAIN)
    except EngineFailed:  # it restarts itself
        return False
    return False


def _verdict(found: Any) -> ConfigurationVerdict:
    fields = as_object(found)
    valid = fields.get("valid")
    if not isinstance(valid, bool):
        raise EngineFailed("The engine's program did not say whether the configuration is valid")
    return ConfigurationVerdict(
        valid, _told(fields.get("warnings" if valid else "issues")) or ("Valid" if valid else "Not valid")
    )


def _told(issues: object) -> str:
    lines = [
        f"{as_string(one.get('path')) or '<root>'}: {as_string(one.get('message'))}"
        for one in map(as_object, as_list(issues))
    ]
    return _shown("\n".join(lines[:_ISSUES]))


def _shown(text: str) -> str:
    return sanitize_lines(text)[:OUTPUT_LIMIT]
