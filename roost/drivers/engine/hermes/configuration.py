"""Hermes's configuration: the user's own `config.yaml`, which the platform itself never changes.

The platform's keys are in Hermes's managed scope, which overrides this file: so the scope has no model if the user
chose one that can be served. Hermes reads the file at its start, so a write needs a restart (1 s). There is no schema:
any YAML mapping that Hermes can read is valid. Only Hermes's own Python parses it, in the container, because parsing
hostile YAML is expensive; the server reads its lines.
"""

import json
import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from roost.core.sanitize import sanitize_lines
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.configuration import (
    OUTPUT_LIMIT,
    TEXT_LIMIT,
    ConfigurationAbility,
    ConfigurationChanged,
    ConfigurationRejected,
    ConfigurationVerdict,
    ConfigurationWritten,
    Expectation,
)
from roost.drivers.engine.abilities.saved_state import is_secret
from roost.drivers.engine.contract import EngineFailed, GatewaySetup
from roost.drivers.engine.hermes.virtual_environment import PYTHON
from roost.drivers.model.json_access import Json, as_object, as_string, parse_json
from roost.warden_client.errors import WardenFileNotFound

USERS_CONFIG = ".hermes/config.yaml"
_MOST_LINES = 5_000
_SETTING = re.compile(r"""(\s*(?:-\s+)*["']?([\w.-]+)["']?\s*:)(?:[ \t]++(.*))?""")
_INNER_SETTING = re.compile(r"""(?<![\w.-])([\w.-]++)["']?\s*+:(?=\s*["']?([^\s"']))""")
_ONE_LINE = re.compile(r"""("[^"]*"|'[^']*'|[^\s"'|>&*!\[{][^{}]*|\$\{\w+\})(?:(?<!\s)\s++#.*)?""")
_SCRIPT = Path(__file__).with_name("container_yaml.py").read_text()
_TIMEOUT_SECONDS = 15.0
_OUTPUT_BYTES = 4 << 20


class HermesConfiguration(ConfigurationAbility):
    async def read(self, agent: AgentContext) -> str:
        return await self._show(agent, await self._read_file(agent))

    async def _show(self, agent: AgentContext, text: str) -> str:
        shown = (await self._run_script(agent, "show", text)).get("text")
        if not isinstance(shown, str):
            raise EngineFailed("The file is not valid YAML")
        return shown

    async def check(self, agent: AgentContext, text: str | None = None) -> ConfigurationVerdict:
        found = await self._run_script(agent, "check", await self._read_file(agent) if text is None else text)
        return ConfigurationVerdict(found.get("valid") is True, _output(found))

    async def write(
        self,
        agent: AgentContext,
        setup: GatewaySetup,  # noqa: ARG002 - the managed scope has the platform's keys
        text: str,
        is_expected: Expectation | None = None,
    ) -> ConfigurationWritten:
        before = await self._read_file(agent)
        if is_expected is not None and not is_expected(await self._show(agent, before)):
            raise ConfigurationChanged
        found = await self._run_script(agent, "restore", text, before)
        whole = found.get("text")
        if found.get("valid") is not True or not isinstance(whole, str) or len(whole.encode()) > TEXT_LIMIT:
            raise ConfigurationRejected(_output(found))
        put = partial(agent.warden.write, USERS_CONFIG, root="home", mode=0o600)
        await put(whole.encode())
        return ConfigurationWritten(live=False, undo=partial(put, before.encode()))

    async def _read_file(self, agent: AgentContext) -> str:
        """Return the content of the file, empty if it is missing."""
        try:
            return (await agent.warden.read(USERS_CONFIG, root="home", limit=TEXT_LIMIT)).decode("utf-8", "replace")
        except WardenFileNotFound:
            return ""

    async def _run_script(self, agent: AgentContext, command: str, text: str, before: str = "") -> Json:
        stdin = json.dumps({"text": text, "before": before}).encode()
        argv = [PYTHON, "-I", "-c", _SCRIPT, command]
        result = await agent.warden.exec(argv, timeout=_TIMEOUT_SECONDS, output_limit=_OUTPUT_BYTES, stdin=stdin)
        found = as_object(parse_json(result.stdout))
        if result.exit_code or not found:
            raise EngineFailed("Hermes's Python could not read the configuration")
        return found


def _output(found: Json) -> str:
    return sanitize_lines(as_string(found.get("output")))[:OUTPUT_LIMIT]


def default_model(setup: GatewaySetup) -> Mapping[str, str]:
    """Return `default` for the managed scope's `model`, or nothing to keep the user's choice."""
    chosen = _parse_model(setup.existing.get(USERS_CONFIG, b"").decode(errors="replace").split("\n", _MOST_LINES))
    keep = chosen in setup.models or (chosen and not setup.all_models)
    return {} if keep else {"default": setup.models[0]}


def _parse_model(lines: Iterable[str]) -> str:
    """Return NAME of `model: NAME`, or of `default: NAME` in the block `model:`.

    These are the forms that Hermes and users write. Other YAML is not needed, since only a served model counts.
    """
    in_block = False
    for line in lines:
        name, colon, value = line.partition(":")
        if line[:1].strip():
            in_block = bool(colon) and name == "model"
        if in_block and name.strip() in ("model", "default") and (model := _parse_scalar(value)):
            return model
    return ""


def _parse_scalar(value: str) -> str:
    """Return a scalar without quotes and comment, empty for anything else."""
    plain = value.split(" #", 1)[0].strip()
    if plain[:1] in ("'", '"'):
        plain = plain[1:].partition(plain[0])[0]
    return "" if plain[:1] in ("#", "{", "[", "&", "*", "|", ">", "!") else plain


def redact_yaml(content: bytes) -> bytes | None:
    """Return the file with empty values for credentials; None if one is in a form that lines do not show. Pure."""
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError:
        return None
    redacted: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        found = _SETTING.fullmatch(line.rstrip())
        if found is None or (found[3] or "").startswith(("{", "[")):
            if line.lstrip().startswith("? ") or any(is_secret(*setting) for setting in _INNER_SETTING.findall(line)):
                return None
            redacted.append(line)
            continue
        start, name, value = found[1], found[2], found[3] or ""
        single = _ONE_LINE.fullmatch(value)
        if is_secret(name, "any") and (_indent(following) > _indent(line) or (value and not single)):
            return None
        is_credential = single is not None and is_secret(name, single[1].strip("\"'"))
        redacted.append(f'{start} ""' if is_credential else line)
    return "".join(f"{line}\n" for line in redacted).encode()


def _indent(line: str) -> int:
    """Return the indentation of a line, -1 for an empty one."""
    return len(line) - len(line.lstrip()) if line.strip() else -1
