"""The OpenClaw engine: the plan of a gateway, its credential and health, the compile cache, skills and devices."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from roost.core import log
from roost.core.problem import Problem
from roost.core.sanitize import sanitize_line
from roost.core.sensitive import Sensitive
from roost.drivers.engine import gateway_json
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.devices import DeviceAbility, DeviceList, DeviceRequestNotFound
from roost.drivers.engine.abilities.saved_state import SavedState
from roost.drivers.engine.abilities.skills import SkillAbility
from roost.drivers.engine.contract import (
    Dial,
    Engine,
    EngineInstallFailed,
    EngineNotInstalled,
    GatewayPlan,
    GatewaySetup,
    Progress,
)
from roost.drivers.engine.gateway_http import is_answering
from roost.drivers.engine.gateway_json import parse_device_list
from roost.drivers.engine.openclaw import compile_cache, config_file, install
from roost.drivers.engine.openclaw.channels import OpenClawChannels
from roost.drivers.engine.openclaw.chat import OpenClawChat
from roost.drivers.engine.openclaw.configuration import OpenClawConfiguration
from roost.drivers.engine.openclaw.rpc import PORT, OpenClawRpc, RpcRefused
from roost.drivers.engine.openclaw.tasks import OpenClawTasks
from roost.drivers.engine.version_folder import VersionFolder, refuse_install
from roost.drivers.model.json_access import as_list, as_object, as_string
from roost.drivers.runtime.contract import HOME, Runtime

_OFF = ("disabled", "blockedByAllowlist", "blockedByAgentFilter")
_MISSING = {"bins": "program", "anyBins": "alternative program", "env": "variable", "config": "setting", "os": "system"}
_FAULT_LENGTH = 500
_NODE = "/engine/node"
_PROGRAM = "/engine/oc"
_CACHE = "/engine/cc"
START = Path(__file__).with_name("start.sh").read_text()
GRACEFUL_STOP = Path(__file__).with_name("graceful_stop.mjs").read_text()
MODULE_HOOKS = Path(__file__).with_name("module_hooks.mjs").read_text()
# Credentials and devices, what belongs to one running gateway, and copies of the configuration.
_CLEARED_TABLES = tuple(
    """
    *token* auth_* *credential* *oauth* secret_* *_keys *_approvals* native_* device_* *pairing* apns_* web_push_*
    channel_* delivery_queue_* *_leases gateway_* agent_databases diagnostic_* audit_* capture_* migration_* config_*
    trajectory_*
    """.split()
)


class OpenClaw(Engine):
    id = "openclaw"
    label = "OpenClaw"
    default_version = install.DEFAULT_VERSION
    port = PORT
    installed_bytes = 1_060_000_000  # with Node and the compile cache
    start_deadline = 120.0
    state: ClassVar[Sequence[str]] = (config_file.STATE,)
    saved_state: ClassVar[SavedState] = SavedState(
        folders=(config_file.STATE,),
        excluded=("npm", "credentials", "devices", "identity", "pairing", "*quarantine*", "openclaw.json.*"),
        databases=("*.sqlite",),
        cleared_tables=_CLEARED_TABLES,
        configuration=config_file.CONFIG,
    )
    reads: ClassVar[Sequence[str]] = (config_file.CONFIG, config_file.PLATFORM_CONFIG)

    def __init__(self, root: Path, images: Sequence[str] = ()) -> None:
        """`root` is the folder of all engines."""
        self._root, self.images = root, images
        self._folder = VersionFolder(root / "openclaw")
        self.channels = OpenClawChannels(self._folder, _RUN, images)
        self._caches = VersionFolder(root / "openclaw-cache")
        self.chat = OpenClawChat()
        self.tasks = OpenClawTasks()
        self.skills = OpenClawSkills()
        self.devices = OpenClawDevices()
        self.configuration = OpenClawConfiguration(_RUN, _ENV)

    def installed(self) -> Sequence[str]:
        return self.images or self._folder.versions()

    def available(self) -> Sequence[str]:
        return self.images or install.available_versions(self._root)

    def install(self, version: str, progress: Progress) -> None:
        refuse_install(self.images)
        install.install_version(self._root, version, progress)

    def remove(self, version: str) -> None:
        self._folder.remove(version)
        self._caches.remove(_cache_name(version))

    async def complete(self, version: str, runtime: Runtime, progress: Progress) -> None:
        """Add to an installed version what a start does not need: its channels and its compile cache. Idempotent."""
        node = await asyncio.to_thread(install.install_node, self._root, progress)
        try:
            await asyncio.to_thread(install.install_plugins, self._folder, version, node, progress)
        except EngineInstallFailed as failure:  # OpenClaw works without them, and the next installation tries again
            log.get_logger(__name__).warning(
                "channels.install_failed", engine=self.id, version=version, error=failure.message
            )
        await self.fill_compile_cache(version, runtime, progress)

    async def fill_compile_cache(self, version: str, runtime: Runtime, progress: Progress) -> None:
        """Create a version's compile cache by a run in a container. Idempotent; a failure only means slower starts."""
        if self._cache_folder(version):
            return
        progress("Filling OpenClaw's compile cache", None)
        try:
            packed = await compile_cache.build_cache(self, version, runtime)
        except Problem as problem:
            log.get_logger(__name__).warning(
                "compile_cache.fill_failed", engine=self.id, version=version, error=problem.message
            )
            return
        await asyncio.to_thread(
            self._caches.put, _cache_name(version), lambda staging: compile_cache.unpack_cache(packed, staging.path)
        )

    def folders(self, version: str) -> Mapping[str, Path]:
        folders = {_PROGRAM: self._folder.get(version), _NODE: install.node_folder(self._root)}
        return {**folders, **self._cache_folder(version)}

    def _cache_folder(self, version: str) -> Mapping[str, Path]:
        try:
            return {_CACHE: self._caches.get(_cache_name(version))}
        except EngineNotInstalled:
            return {}

    def plan(self, version: str, setup: GatewaySetup) -> GatewayPlan:  # noqa: ARG002 - the same for all versions
        present = setup.existing.get(config_file.CONFIG)
        users = None if present is None else config_file.parse_config(present)
        platform = config_file.render_config(config_file.merge_config({}, setup))
        merged = platform if users is None else config_file.render_config(config_file.merge_config(users, setup))
        files = {config_file.PLATFORM_CONFIG: platform, config_file.CONFIG: merged}
        if present is not None and users is None:
            files[f"{config_file.CONFIG}.rejected"] = present
        # Not `proxy.proxyUrl` in the file: with it, a new agent searches for old state for 2 s.
        return GatewayPlan(files=files, argv=_argv(), env={**_ENV, "OPENCLAW_PROXY_URL": setup.proxy_url})

    def redact_configuration(self, content: bytes) -> bytes | None:
        return config_file.redact_config(content)

    def credential(self, token: Sensitive[str]) -> tuple[str, Sensitive[str]]:
        return config_file.edge_header(token), Sensitive(config_file.OWNER)

    async def ready(self, dial: Dial) -> bool:
        return await is_answering(dial, self.port, "/readyz")

    async def health(self, dial: Dial, token: Sensitive[str]) -> str:
        async with OpenClawRpc.open(dial, token) as rpc:
            await rpc.call("health")
            return rpc.version


_RUN = (f"{_NODE}/bin/node", "--max-semi-space-size=64", f"{_PROGRAM}/node_modules/openclaw/openclaw.mjs")
_ENV: Mapping[str, str] = {
    "OPENCLAW_STATE_DIR": f"{HOME}/{config_file.STATE}",
    "OPENCLAW_NO_RESPAWN": "1",
    "OPENCLAW_PACKAGED_COMPILE_CACHE_RESPAWNED": "1",  # else it restarts itself with its own cache
    "NODE_COMPILE_CACHE": _CACHE,
    "NODE_ENV": "production",
    "NODE_USE_ENV_PROXY": "1",
    "DO_NOT_TRACK": "1",
    "PATH": f"{_NODE}/bin:{_PROGRAM}/node_modules/.bin:/usr/local/bin:/usr/bin:/bin",
}


def _cache_name(version: str) -> str:
    """Return a cache's folder name, which contains Node's version because V8 only accepts its own cache."""
    return f"{version}+node{install.NODE_VERSION}"


def _argv() -> Sequence[str]:
    program, *arguments = _RUN
    files = [f"{HOME}/{name}" for name in (config_file.CONFIG, config_file.PLATFORM_CONFIG)]
    modules = [f"--import=data:text/javascript,{quote(module)}" for module in (GRACEFUL_STOP, MODULE_HOOKS)]
    return ["/bin/sh", "-c", START, "openclaw", *files, program, *modules, *arguments]


class OpenClawSkills(SkillAbility):
    async def list(self, agent: AgentContext) -> Mapping[str, str | None]:
        async with OpenClawRpc.open(agent.warden.dial, agent.token) as rpc:
            found = as_object(await rpc.call("skills.status"))
        return {as_string(one.get("name")): _find_fault(one) for one in gateway_json.parse_objects(found.get("skills"))}

    async def refresh(self, agent: AgentContext) -> None:
        """Do nothing, because the gateway reads the folder each time."""


def _find_fault(skill: Mapping[str, Any]) -> str | None:
    """Return why OpenClaw does not use a skill that it lists; None if it does."""
    off = "its configuration turns it off" if any(skill.get(key) is True for key in _OFF) else ""
    if not off and skill.get("eligible") is not False:
        return None
    missing = as_object(skill.get("missing"))
    lacks = [f"the {kind} `{as_string(name)}`" for key, kind in _MISSING.items() for name in as_list(missing.get(key))]
    lack = f"{', '.join(lacks)} {'are' if len(lacks) > 1 else 'is'} missing" if lacks else "it gives no reason"
    return sanitize_line(f"OpenClaw does not use it: {off or lack}")[:_FAULT_LENGTH]


class OpenClawDevices(DeviceAbility):
    """Device pairing. The gateway pairs devices from its own loopback without approval.

    Devices that come through our edge are never such devices: it sends each client's address, and a public one for
    clients on this machine.
    """

    async def list(self, agent: AgentContext) -> DeviceList:
        async with OpenClawRpc.open(agent.warden.dial, agent.token) as rpc:
            return parse_device_list(await rpc.call("device.pair.list"))

    async def approve(self, agent: AgentContext, request_id: str) -> None:
        async with OpenClawRpc.open(agent.warden.dial, agent.token) as rpc:
            try:
                await rpc.call("device.pair.approve", {"requestId": request_id})
            except RpcRefused as refused:
                waiting = parse_device_list(await rpc.call("device.pair.list")).pending
                if any(one.request_id == request_id for one in waiting):
                    raise
                raise DeviceRequestNotFound from refused
