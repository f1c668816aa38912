"""The Hermes engine: installation, the plan of a gateway, and its health.

The platform's settings are in Hermes's managed scope, a folder whose keys override the user's. The user's `config.yaml`
and `.env` therefore stay unchanged, and Hermes tolerates malformed ones; only an `.env` that prevents a start is moved
away.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from roost.core.sensitive import Sensitive
from roost.drivers.engine import gateway_json
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.saved_state import SavedState
from roost.drivers.engine.abilities.skills import SkillAbility
from roost.drivers.engine.contract import (
    Dial,
    Engine,
    EngineInstallFailed,
    EngineNotInstalled,
    GatewayPlan,
    GatewaySetup,
    InvalidVersionName,
    Progress,
)
from roost.drivers.engine.gateway_http import GatewayHttpAbility, is_answering, send_json
from roost.drivers.engine.hermes import channels, virtual_environment
from roost.drivers.engine.hermes.chat import HermesChat
from roost.drivers.engine.hermes.configuration import USERS_CONFIG, HermesConfiguration, default_model, redact_yaml
from roost.drivers.engine.hermes.tasks import HermesTasks
from roost.drivers.engine.version_folder import (
    InstallStaging,
    VersionFolder,
    check_version,
    is_at_least,
    query_registry,
    refuse_install,
)
from roost.drivers.model.json_access import as_string
from roost.drivers.runtime.contract import HOME, WORKSPACE

_FOLDER = ".hermes/skills"
_LINK, _TARGET = f"{HOME}/{_FOLDER}/workspace", f"{WORKSPACE}/skills"
_TOUCHED = f"{_FOLDER}/.roost"
LINK_WORKSPACE = f'[ -e "{_LINK}" ] || [ -L "{_LINK}" ] || ln -s "{_TARGET}" "{_LINK}"'
"""Shell command that makes the link unless something has its name; the folder exists."""
CREATE_FOLDER = f'mkdir -p "{HOME}/{_FOLDER}"'
_LOCK = Path(__file__).with_name("requirements.txt")
_SCHEDULER = Path(__file__).with_name("scheduler.py").read_bytes()
_SCHEDULER_PATH = ".hermes/plugins/roost/__init__.py"
_MANAGED = ".roost/hermes"
_USERS_ENV = ".hermes/.env"
# Without a config.yaml of the user, even an empty one, the gateway ignores the managed one.
_START = (
    "/bin/sh",
    "-c",
    f'{CREATE_FOLDER}; {LINK_WORKSPACE}; [ -e "$1" ] || : >"$1"; shift; exec "$@"',
    "hermes",
)
_GATEWAY = ("-m", "hermes_cli.main", "gateway", "run", "-v")
_EXCLUDED = """
    gateway* state processes.json channel_* .update_* .managed .container-mode pairing platforms whatsapp slack_*
    feishu_* honcho.json mem0.json mcp-* bin node sandboxes backups checkpoints chrome-debug ticker_*
""".split()
_FATAL_IN_ENV = (b"\0", b"HERMES_MANAGED_DIR", b"HERMES_HOME")  # these fail the start, or disable the managed scope
_OLDEST = (0, 17)  # the first version with a managed scope
_CONNECT_SECONDS = 15  # for one channel at a start; later attempts are in the background
_PACKAGES = 80  # approximate number of a version's packages, for the progress without a lock


class HermesSkills(GatewayHttpAbility, SkillAbility):
    """Skills, of which Hermes finds those of the workspace by a link in its own folder.

    Its setting for further folders is read from the user's file only, which the platform does not change. Hermes
    follows the link, but keeps what it found for 30 s unless its own folder has changed.
    """

    async def list(self, agent: AgentContext) -> Mapping[str, None]:
        _, found = await self._send(agent, "GET /v1/skills")
        return dict.fromkeys(as_string(skill.get("name")) for skill in gateway_json.parse_objects(found.get("data")))

    async def refresh(self, agent: AgentContext) -> None:
        await agent.warden.write(_TOUCHED, b"", root="home", mode=0o600)


class Hermes(Engine):
    id = "hermes"
    label = "Hermes"
    default_version = "0.19.0"
    port = 18842
    installed_bytes = 260_000_000
    start_deadline = 60.0
    state: ClassVar[Sequence[str]] = (".hermes",)
    saved_state: ClassVar[SavedState] = SavedState(
        folders=(".hermes",),
        excluded=(*_EXCLUDED, _SCHEDULER_PATH.rpartition("/")[0]),
        databases=("*.db",),
        cleared_tables=("*token*", "*credential*", "*pairing*", "compression_locks", "gateway_routing", "delivery_*"),
        configuration=USERS_CONFIG,
    )
    reads: ClassVar[Sequence[str]] = (_USERS_ENV, USERS_CONFIG)

    def __init__(self, root: Path, images: Sequence[str] = ()) -> None:
        """`root` is the folder of all engines."""
        self.images, self._folder = images, VersionFolder(root / "hermes")
        self.configuration = HermesConfiguration()
        self.channels = channels.HermesChannels(self._folder, self.port, images)
        self.chat = HermesChat(self.port)
        self.skills = HermesSkills(self.port)
        self.tasks = HermesTasks(self.port)

    def installed(self) -> Sequence[str]:
        return self.images or [
            version
            for version in self._folder.versions()
            if virtual_environment.has_interpreter(self._folder.get(version))
        ]

    def available(self) -> Sequence[str]:
        if self.images:
            return self.images
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        answer = query_registry([*pip, "index", "versions", "hermes-agent"])
        found = re.search(r"^Available versions: (.+)$", answer, re.MULTILINE)
        if found is None:
            raise EngineInstallFailed("The registry lists no versions of Hermes")
        return [version for version in found[1].split(", ") if is_at_least(version, _OLDEST)][:20]

    def install(self, version: str, progress: Progress) -> None:
        refuse_install(self.images)
        if not is_at_least(check_version(version), _OLDEST):
            raise InvalidVersionName
        if version in self._folder.versions() and version not in self.installed():
            self._folder.remove(version)
        self._folder.put(version, lambda staging: self._fill(version, staging, progress))

    def remove(self, version: str) -> None:
        self._folder.remove(version)

    def folders(self, version: str) -> Mapping[str, Path]:
        path = self._folder.get(version)
        if not virtual_environment.has_interpreter(path):
            raise EngineNotInstalled(f"The Python of Hermes {version} no longer exists; install it again")
        return virtual_environment.container_folders(path)

    def plan(self, version: str, setup: GatewaySetup) -> GatewayPlan:  # noqa: ARG002 - the same for all versions
        files = _files(setup, self.port)
        users = setup.existing.get(_USERS_ENV, b"")
        if any(word in users for word in _FATAL_IN_ENV):
            files |= {f"{_USERS_ENV}.rejected": users, _USERS_ENV: b""}
        return GatewayPlan(
            files=files,
            argv=[*_START, f"{HOME}/{USERS_CONFIG}", virtual_environment.PYTHON, *_GATEWAY],
            env={
                "HERMES_HOME": f"{HOME}/.hermes",
                "HERMES_GATEWAY_MAX_STARTS": "0",  # else the sixth start in 2 min sleeps; the warden already delays
                "HERMES_MANAGED_DIR": f"{HOME}/{_MANAGED}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "TERMINAL_CWD": WORKSPACE,  # only the gateway reads the setting
            },
        )

    def redact_configuration(self, content: bytes) -> bytes | None:
        return redact_yaml(content)

    async def ready(self, dial: Dial) -> bool:
        return await is_answering(dial, self.port, "/health")

    async def health(self, dial: Dial, token: Sensitive[str]) -> str:
        _, detail = await send_json(dial, self.port, "GET /health/detailed", token)
        return str(detail.get("version", ""))

    def _fill(self, version: str, staging: InstallStaging, progress: Progress) -> None:
        progress(f"Installing Hermes {version}", None)
        requirements, expected = [f"hermes-agent[messaging]=={version}"], _PACKAGES
        if version == self.default_version:
            requirements = ["--no-deps", "--require-hashes", "-r", str(_LOCK)]
            expected = len(re.findall(r"^\S+==", _LOCK.read_text(), re.MULTILINE))
        virtual_environment.create_environment(staging, requirements, expected, progress)


def _files(setup: GatewaySetup, port: int) -> dict[str, bytes]:
    api_server = {
        "API_SERVER_ENABLED": "true",
        "API_SERVER_KEY": setup.token.reveal(),
        "API_SERVER_HOST": "127.0.0.1",
        "API_SERVER_PORT": str(port),
        **channels.channel_variables(setup.channels),
    }
    return {
        f"{_MANAGED}/config.yaml": json.dumps(_managed_config(setup), indent=2).encode(),  # JSON is valid YAML
        _SCHEDULER_PATH: _SCHEDULER,
        f"{_MANAGED}/.env": "".join(f"{key}={value}\n" for key, value in api_server.items()).encode(),
    }


def _managed_config(setup: GatewaySetup) -> dict[str, object]:
    """Return the managed configuration.

    The API key is a placeholder, because the model gateway identifies the agent by the socket.
    """
    return {
        "model": {
            **default_model(setup),
            "provider": "custom",
            "base_url": setup.model_url,
            "api_key": "none-needed",
            "context_length": 128_000,  # without it each turn queries the model host, and a start the internet
            "ollama_num_ctx": 0,  # else each chat looks for a local model server, by up to five requests
        },
        "security": {"tirith_enabled": False},
        "cron": {"provider": "roost"},  # the default looks for due jobs once a minute
        "terminal": {"cwd": WORKSPACE},  # else its tools start in the home
        # Before the channels, because a start connects in this order and waits for each.
        "platforms": {"api_server": {"enabled": True}},
        "gateway": {"platform_connect_timeout": _CONNECT_SECONDS},
        **channels.channel_config(setup.channels),
        **channels.plugin_config(setup.channels, setup.existing.get(USERS_CONFIG, b"")),
    }
