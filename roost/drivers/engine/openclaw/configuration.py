"""OpenClaw's configuration: its gateway reads and writes it over RPC, its program validates it in the container.

The gateway replaces secrets by a placeholder, restores them in a write, and applies a write within a fraction of a
second. It validates only what it writes, so validation needs a run of the program (about 0.8 s).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from roost.core import clock
from roost.core.sanitize import sanitize_lines
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.configuration import (
    OUTPUT_LIMIT,
    ConfigurationAbility,
    ConfigurationChanged,
    ConfigurationRejected,
    ConfigurationVerdict,
    ConfigurationWritten,
    Expectation,
)
from roost.drivers.engine.contract import EngineFailed, GatewaySetup
from roost.drivers.engine.openclaw import config_file
from roost.drivers.engine.openclaw.rpc import OpenClawRpc, RpcRefused
from roost.drivers.model.json_access import as_list, as_object, as_string, parse_json
from roost.drivers.runtime.contract import HOME

PLACEHOLDER = "__OPENCLAW_REDACTED__"
_CHECK_SECONDS = 60.0  # 0.8 s on an idle machine
_SET_SECONDS = 20.0
_LIVE_SECONDS = 6.0
_POLL_SECONDS = 0.05
_CONFLICT = "re-run config.get"  # part of the error for a stale hash
_ATTEMPTS = 5
_MAX_ISSUES = 40
_READ_LIMIT = 4 << 20
_PATH = f"{HOME}/{config_file.CONFIG}"
# sh CHECK FILE (file | -) PROGRAM...; a text on standard input is checked next to the file, because its includes are
# relative to that folder.
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
    def __init__(self, program: Sequence[str], env: Mapping[str, str]) -> None:
        """`program` is the command line of OpenClaw in the container, which validates with the variables `env`."""
        self._program = program
        self._env = env

    async def read(self, agent: AgentContext) -> str:
        async with OpenClawRpc.open(agent.warden.dial, agent.token) as rpc:
            return _shown_text(as_object(await rpc.call("config.get")), agent)

    async def check(self, agent: AgentContext, text: str | None = None) -> ConfigurationVerdict:
        if text is not None:
            users = config_file.parse_config(text.encode())
            if users is None:
                return ConfigurationVerdict(valid=False, output="Not a JSON5 object, or too deep or too large")
            if config_file.INCLUDE in users:
                return ConfigurationVerdict(valid=False, output=f"{config_file.INCLUDE}: only allowed below the root")
        result = await agent.warden.exec(
            ["/bin/sh", "-c", _CHECK, "check", _PATH, "file" if text is None else "-", *self._program],
            env=self._env,
            timeout=_CHECK_SECONDS,
            stdin=(text or "").encode(),
        )
        found = as_object(parse_json(result.stdout))
        valid = found.get("valid")
        if not isinstance(valid, bool):
            raise EngineFailed("The engine's program did not say whether the configuration is valid")
        issues = _format_issues(found.get("warnings" if valid else "issues"))
        return ConfigurationVerdict(valid, issues or ("Valid" if valid else "Not valid"))

    async def write(
        self, agent: AgentContext, setup: GatewaySetup, text: str, is_expected: Expectation | None = None
    ) -> ConfigurationWritten:
        users = config_file.parse_config(text.encode())
        if users is None:
            raise ConfigurationRejected
        raw = config_file.render_config(config_file.merge_config(users, setup))
        if config_file.parse_config(raw) is None:
            raise ConfigurationRejected("Too large")
        before = await agent.warden.read(config_file.CONFIG, root="home", limit=_READ_LIMIT)
        undo = partial(agent.warden.write, config_file.CONFIG, before, root="home", mode=0o600)
        async with OpenClawRpc.open(agent.warden.dial, agent.token) as rpc:
            await _set(rpc, raw.decode(), lambda found: is_expected is None or is_expected(_shown_text(found, agent)))
            try:
                return ConfigurationWritten(await _is_live(rpc), undo)
            except ConfigurationRejected:
                await undo()
                raise


def _shown_text(found: Mapping[str, Any], agent: AgentContext) -> str:
    """Return the file of an answer as its user may see it."""
    raw = found.get("raw")
    if not isinstance(raw, str):
        raise EngineFailed("The gateway cannot read the file")
    return raw.replace(config_file.edge_header(agent.token), PLACEHOLDER)


async def _set(rpc: OpenClawRpc, raw: str, is_expected: Callable[[Mapping[str, Any]], bool]) -> None:
    """Write the file if it is the expected one; after a concurrent write, try again with its hash.

    The gateway compares the hash just before it writes. Raises ConfigurationChanged.
    """
    for attempt in range(_ATTEMPTS):
        found = as_object(await rpc.call("config.get"))
        if not is_expected(found):
            raise ConfigurationChanged
        try:
            await rpc.call("config.set", {"raw": raw, "baseHash": found.get("hash")}, _SET_SECONDS)
            return
        except RpcRefused as refused:
            if _CONFLICT in refused.message and attempt + 1 < _ATTEMPTS:
                continue
            if refused.code == "INVALID_REQUEST":
                raise ConfigurationRejected(_sanitize(refused.message)) from refused
            raise


async def _is_live(rpc: OpenClawRpc) -> bool:
    """Return whether the gateway has applied the file: not if `gateway.reload` is off or a restart is needed.

    Raises ConfigurationRejected if the gateway finds the file invalid, although it accepted the text.
    """
    deadline = clock.monotonic_seconds() + _LIVE_SECONDS
    try:
        while clock.monotonic_seconds() < deadline:
            found = as_object(await rpc.call("config.get"))
            if found.get("valid") is False:
                raise ConfigurationRejected(_format_issues(found.get("issues")))
            if found.get("appliedConfigHash") and found.get("appliedConfigHash") == found.get("configRevisionHash"):
                return True
            if as_object(as_object(as_object(found.get("config")).get("gateway")).get("reload")).get("mode") == "off":
                return False
            await asyncio.sleep(_POLL_SECONDS)
    except EngineFailed:  # it is restarting
        return False
    return False


def _format_issues(issues: object) -> str:
    found = [as_object(one) for one in as_list(issues)[:_MAX_ISSUES]]
    lines = [f"{as_string(one.get('path')) or '<root>'}: {as_string(one.get('message'))}" for one in found]
    return _sanitize("\n".join(lines))


def _sanitize(text: str) -> str:
    return sanitize_lines(text)[:OUTPUT_LIMIT]
