"""The OpenClaw engine: its software, its configuration, the command that starts a gateway, and whether that is well.

It joins the rooms beside it and refuses to know more than that: `software` installs, `config` renders, `rpc` speaks.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from roost.core.sensitive import Sensitive
from roost.drivers.engine import http, node
from roost.drivers.engine.contract import Dial, Engine, GatewayPlan, GatewaySetup, Health, Progress
from roost.drivers.engine.openclaw import config, software
from roost.drivers.engine.openclaw.rpc import Rpc
from roost.drivers.runtime.contract import HOME, Mount

_NODE = "/engine/node"
_PROGRAM = "/engine/oc"
_CACHE = "/engine/cc"
_STATE = ".openclaw"
_CONFIG = f"{_STATE}/openclaw.json"
_PLATFORM_CONFIG = ".roost/openclaw/openclaw.json"
START = Path(__file__).with_name("start.sh").read_text()


class OpenClaw(Engine):
    """`root` is the folder of all engines."""

    id = "openclaw"
    label = "OpenClaw"
    default_version = software.DEFAULT_VERSION
    port = config.PORT
    start_deadline = 120.0
    reads: ClassVar[Sequence[str]] = (_CONFIG,)

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = software.folder(root)

    def installed(self) -> Sequence[str]:
        return self._folder.versions()

    def available(self) -> Sequence[str]:
        return software.available(self._root)

    def install(self, version: str, progress: Progress) -> None:
        software.install(self._root, version, progress)

    def remove(self, version: str) -> None:
        self._folder.remove(version)

    def mounts(self, version: str) -> Sequence[Mount]:
        return (Mount(node.folder(self._root), _NODE), Mount(self._folder.get(version), _PROGRAM))

    def plan(self, version: str, setup: GatewaySetup) -> GatewayPlan:  # noqa: ARG002 - the same for all versions
        written = setup.existing.get(_CONFIG)
        users = None if written is None else config.read(written)
        platform = config.render(config.fresh(setup))
        files = {
            _PLATFORM_CONFIG: platform,
            _CONFIG: platform if users is None else config.render(config.merge(users, setup)),
        }
        if written is not None and users is None:
            files[f"{_CONFIG}.rejected"] = written
        return GatewayPlan(files=files, argv=_argv(), env=_ENV)

    async def ready(self, dial: Dial) -> bool:
        return await http.answers(dial, self.port, "/readyz")

    async def health(self, dial: Dial, token: Sensitive[str]) -> Health:
        async with Rpc.open(dial, self.port, token) as rpc:
            return Health(rpc.version, await rpc.call("health"))


_ENV: Mapping[str, str] = {
    "OPENCLAW_STATE_DIR": f"{HOME}/{_STATE}",
    "OPENCLAW_NO_RESPAWN": "1",
    "OPENCLAW_PACKAGED_COMPILE_CACHE_RESPAWNED": "1",  # else it starts itself anew with a cache of its own
    "NODE_COMPILE_CACHE": _CACHE,
    "NODE_ENV": "production",
    "NODE_USE_ENV_PROXY": "1",
    "DO_NOT_TRACK": "1",
    "PATH": f"{_NODE}/bin:{_PROGRAM}/node_modules/.bin:/usr/local/bin:/usr/bin:/bin",
}


def _argv() -> Sequence[str]:
    program = [f"{_NODE}/bin/node", "--max-semi-space-size=64", f"{_PROGRAM}/node_modules/openclaw/openclaw.mjs"]
    return ["/bin/sh", "-c", START, "openclaw", f"{HOME}/{_CONFIG}", f"{HOME}/{_PLATFORM_CONFIG}", *program]
