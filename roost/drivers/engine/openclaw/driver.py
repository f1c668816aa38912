"""The OpenClaw engine: its software, its configuration, the command that starts a gateway, and its health.

`install` installs it, `config` renders its configuration, `rpc` speaks to its gateway.
"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from roost.core import log
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.engine import http, node
from roost.drivers.engine.contract import (
    Dial,
    Engine,
    EngineNotInstalled,
    GatewayHealth,
    GatewayPlan,
    GatewaySetup,
    Progress,
)
from roost.drivers.engine.openclaw import compile_cache, config, install
from roost.drivers.engine.openclaw.channels import OpenClawChannels
from roost.drivers.engine.openclaw.configuration import OpenClawConfiguration
from roost.drivers.engine.openclaw.devices import OpenClawDevices
from roost.drivers.engine.openclaw.rpc import OpenClawRpc
from roost.drivers.engine.openclaw.tasks import OpenClawTasks
from roost.drivers.engine.version_folder import VersionFolder
from roost.drivers.runtime.contract import HOME, Runtime

_NODE = "/engine/node"
_PROGRAM = "/engine/oc"
_CACHE = "/engine/cc"
_STATE = ".openclaw"
_CONFIG = f"{_STATE}/openclaw.json"
START = Path(__file__).with_name("start.sh").read_text()
CLOSING = Path(__file__).with_name("closing.mjs").read_text()


class OpenClaw(Engine):
    """`root` is the folder of all engines."""

    id = "openclaw"
    label = "OpenClaw"
    default_version = install.DEFAULT_VERSION
    port = config.PORT
    start_deadline = 120.0
    state: ClassVar[Sequence[str]] = (_STATE,)
    reads: ClassVar[Sequence[str]] = (_CONFIG, config.PLATFORM_CONFIG)

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = install.folder(root)
        self.channels = OpenClawChannels(self._folder, self.port)
        self._caches = VersionFolder(root / "openclaw-cache")
        self.tasks = OpenClawTasks(self.port)
        self.devices = OpenClawDevices(self.port)
        self.configuration = OpenClawConfiguration(self.port, _CONFIG, HOME, _RUN, _ENV)

    def installed(self) -> Sequence[str]:
        return self._folder.versions()

    def available(self) -> Sequence[str]:
        return install.available(self._root)

    def install(self, version: str, progress: Progress) -> None:
        install.install(self._root, version, progress)

    def remove(self, version: str) -> None:
        self._folder.remove(version)
        self._caches.remove(_cache_name(version))

    async def bake(self, version: str, runtime: Runtime, progress: Progress) -> None:
        """Fill the version's code cache by one run in a container. Idempotent; a failure only means slower starts."""
        if self._cached(version):
            return
        progress("Filling OpenClaw's code cache", None)
        try:
            packed = await compile_cache.run(self, version, runtime)
        except Problem as problem:
            log.get_logger(__name__).warning(
                "code_cache.fill_failed", engine=self.id, version=version, error=problem.message
            )
            return
        await asyncio.to_thread(
            self._caches.put, _cache_name(version), lambda staging: compile_cache.unpack(packed, staging.path)
        )

    def folders(self, version: str) -> Mapping[str, Path]:
        return {_PROGRAM: self._folder.get(version), _NODE: node.folder(self._root), **self._cached(version)}

    def _cached(self, version: str) -> Mapping[str, Path]:
        try:
            return {_CACHE: self._caches.get(_cache_name(version))}
        except EngineNotInstalled:
            return {}

    def plan(self, version: str, setup: GatewaySetup) -> GatewayPlan:  # noqa: ARG002 - the same for all versions
        written = setup.existing.get(_CONFIG)
        users = None if written is None else config.read(written)
        platform = config.render(config.fresh(setup))
        files = {
            config.PLATFORM_CONFIG: platform,
            _CONFIG: platform if users is None else config.render(config.merge(users, setup)),
        }
        if written is not None and users is None:
            files[f"{_CONFIG}.rejected"] = written
        # `proxy.proxyUrl` in the file would do the same, and have a fresh agent search itself for old state (2 s).
        return GatewayPlan(files=files, argv=_argv(), env={**_ENV, "OPENCLAW_PROXY_URL": setup.proxy_url})

    def credential(self, token: Sensitive[str]) -> tuple[str, Sensitive[str]]:
        return config.edge_header(token), Sensitive(config.OWNER)

    async def ready(self, dial: Dial) -> bool:
        return await http.answers(dial, self.port, "/readyz")

    async def health(self, dial: Dial, token: Sensitive[str]) -> GatewayHealth:
        async with OpenClawRpc.open(dial, self.port, token) as rpc:
            detail = await rpc.call("health")
            return GatewayHealth(rpc.version, detail if isinstance(detail, dict) else {})  # pyright: ignore[reportUnknownArgumentType] - JSON


_RUN = (f"{_NODE}/bin/node", "--max-semi-space-size=64", f"{_PROGRAM}/node_modules/openclaw/openclaw.mjs")
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


def _cache_name(version: str) -> str:
    """V8 takes a cache from the same Node only."""
    return f"{version}+node{node.VERSION}"


def _argv() -> Sequence[str]:
    program, *arguments = _RUN
    return [
        *("/bin/sh", "-c", START, "openclaw", f"{HOME}/{_CONFIG}", f"{HOME}/{config.PLATFORM_CONFIG}"),
        *(program, f"--import=data:text/javascript,{quote(CLOSING)}", *arguments),
    ]
