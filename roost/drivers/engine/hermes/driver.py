"""The Hermes engine: what it is installed from, how a gateway of it is configured, and how it tells that it is well.

The platform's settings go into Hermes's managed scope, a folder whose values win over the user's key by key. So the
user's `config.yaml` and `.env` are the user's alone, and Hermes itself copes with broken ones; only an `.env` that
keeps a gateway from starting is set aside.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from roost.core.sensitive import Sensitive
from roost.drivers.engine import http
from roost.drivers.engine.contract import (
    Dial,
    Engine,
    EngineInstallFailed,
    EngineNotInstalled,
    GatewayHealth,
    GatewayPlan,
    GatewaySetup,
    InvalidVersionName,
    Progress,
)
from roost.drivers.engine.hermes import channels, environment, models
from roost.drivers.engine.hermes.configuration import HermesConfiguration
from roost.drivers.engine.hermes.tasks import CLOCK, HermesTasks
from roost.drivers.engine.install_staging import InstallStaging, ask
from roost.drivers.engine.version_folder import VersionFolder, check_version
from roost.drivers.runtime.contract import HOME, WORKSPACE

_LOCK = Path(__file__).with_name("requirements.txt")
_MANAGED = ".roost/hermes"
_USERS_ENV = ".hermes/.env"
_USERS_CONFIG = ".hermes/config.yaml"
_CLOCK = ".hermes/plugins/roost/__init__.py"
# The gateway looks at the managed config.yaml only where there is one of the user's, be it empty.
_START = ("/bin/sh", "-c", 'mkdir -p "${1%/*}"; [ -e "$1" ] || : >"$1"; shift; exec "$@"', "hermes")
_GATEWAY = ("-m", "hermes_cli.main", "gateway", "run", "-v")
_FATAL_IN_ENV = (b"\0", b"HERMES_MANAGED_DIR", b"HERMES_HOME")  # ends the start, or leads it past the managed scope
_OLDEST = (0, 17)  # the first with a managed scope
_CONTEXT_LENGTH = 128_000  # without it each turn asks the model host, and a start asks the internet
_CONNECT_SECONDS = 15  # for one channel at a start; afterwards it is tried again in the background
_PACKAGES = 80  # about as many as a version brings, for the progress of one that has no lock


class Hermes(Engine):
    """`root` is the folder of all engines."""

    id = "hermes"
    label = "Hermes"
    default_version = "0.19.0"
    port = 18842
    start_deadline = 60.0
    state: ClassVar[Sequence[str]] = (".hermes",)
    reads: ClassVar[Sequence[str]] = (_USERS_ENV, models.USERS_CONFIG)
    target: ClassVar[str] = "/engine/hermes"

    def __init__(self, root: Path) -> None:
        self._folder = VersionFolder(root / "hermes")
        self.configuration = HermesConfiguration(_USERS_CONFIG, f"{self.target}/bin/python3")
        self.channels = channels.HermesChannels(self._folder, self.port)
        self.tasks = HermesTasks(self.port, f"{self.target}/bin/python3")

    def installed(self) -> Sequence[str]:
        return [version for version in self._folder.versions() if environment.usable(self._folder.get(version))]

    def available(self) -> Sequence[str]:
        answer = ask([sys.executable, "-m", "pip", "--disable-pip-version-check", "index", "versions", "hermes-agent"])
        found = re.search(r"^Available versions: (.+)$", answer, re.MULTILINE)
        if found is None:
            raise EngineInstallFailed("The registry named no versions of Hermes")
        return [version for version in found[1].split(", ") if _drivable(version)][:20]

    def install(self, version: str, progress: Progress) -> None:
        if not _drivable(check_version(version)):
            raise InvalidVersionName
        if version in self._folder.versions() and version not in self.installed():
            self._folder.remove(version)
        self._folder.put(version, lambda staging: self._fill(version, staging, progress))

    def remove(self, version: str) -> None:
        self._folder.remove(version)

    def folders(self, version: str) -> Mapping[str, Path]:
        path = self._folder.get(version)
        if not environment.usable(path):
            raise EngineNotInstalled(f"The Python that Hermes {version} was installed for is gone; install it again")
        return environment.folders(path, self.target)

    def plan(self, version: str, setup: GatewaySetup) -> GatewayPlan:  # noqa: ARG002 - the same for all versions
        files = _files(setup, self.port)
        users = setup.existing.get(_USERS_ENV, b"")
        if any(word in users for word in _FATAL_IN_ENV):
            files |= {f"{_USERS_ENV}.rejected": users, _USERS_ENV: b""}
        return GatewayPlan(
            files=files,
            argv=[*_START, f"{HOME}/{_USERS_CONFIG}", f"{self.target}/bin/python3", *_GATEWAY],
            env={
                "HERMES_HOME": f"{HOME}/.hermes",
                "HERMES_GATEWAY_MAX_STARTS": "0",  # else the sixth start in two minutes sleeps; our warden waits anyway
                "HERMES_MANAGED_DIR": f"{HOME}/{_MANAGED}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "TERMINAL_CWD": WORKSPACE,  # the setting alone is read by its gateway only
            },
        )

    async def ready(self, dial: Dial) -> bool:
        return await http.answers(dial, self.port, "/health")

    async def health(self, dial: Dial, token: Sensitive[str]) -> GatewayHealth:
        name, value = self.credential(token)
        detail = await http.get_json(dial, self.port, "/health/detailed", {name: value.reveal()})
        return GatewayHealth(str(detail.get("version", "")), detail)

    def _fill(self, version: str, staging: InstallStaging, progress: Progress) -> None:
        progress(f"Installing Hermes {version}", None)
        if version != self.default_version:
            environment.make(staging, [f"hermes-agent[messaging]=={version}"], _PACKAGES, progress)
            return
        expected = len(re.findall(r"^\S+==", _LOCK.read_text(), re.MULTILINE))
        environment.make(staging, ["--no-deps", "--require-hashes", "-r", str(_LOCK)], expected, progress)


def _drivable(version: str) -> bool:
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= _OLDEST


def _files(setup: GatewaySetup, port: int) -> dict[str, bytes]:
    api_server = {
        "API_SERVER_ENABLED": "true",
        "API_SERVER_KEY": setup.token.reveal(),
        "API_SERVER_HOST": "127.0.0.1",
        "API_SERVER_PORT": str(port),
        **channels.environment(setup.channels),
    }
    return {
        f"{_MANAGED}/config.yaml": json.dumps(_config(setup), indent=2).encode(),
        _CLOCK: CLOCK,
        f"{_MANAGED}/.env": "".join(f"{key}={value}\n" for key, value in api_server.items()).encode(),
    }


def _config(setup: GatewaySetup) -> dict[str, object]:
    """JSON is YAML. The key is a placeholder: the model gateway knows the agent by the socket."""
    return {
        "model": {
            **models.default(setup),
            "provider": "custom",
            "base_url": setup.model_url,
            "api_key": "none-needed",
            "context_length": _CONTEXT_LENGTH,
        },
        "security": {"tirith_enabled": False},
        "cron": {"provider": "roost"},  # its own looks once a minute
        "terminal": {"cwd": WORKSPACE},  # else its tools work in the home
        "platforms": {"api_server": {"enabled": True}},  # named first: a start goes by this order, waiting for each
        "gateway": {"platform_connect_timeout": _CONNECT_SECONDS},
        **channels.config(setup.channels),
    }
