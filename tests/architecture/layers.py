"""Order of the layers (decisions 0001 and 0051). A new edge or a higher rank is a line, with its reason, to weigh."""

from collections.abc import Mapping

LAYERS: Mapping[str, tuple[str, ...]] = {
    # layer: the layers that it may import besides itself
    "core": (),
    "warden_client": ("core", "net"),
    "warden": (),  # mounted alone into containers: the standard library and itself
    "net": ("core",),
    "contracts": ("core", "net", "warden_client"),
    "migrations": ("core",),
    "web": ("core",),
    "work": ("core",),
    "config": ("settings", "setting_types"),
    "settings": ("core", "net", "contracts", "setting_types", "kubernetes_settings"),
    "kubernetes_settings": ("setting_types",),
    "setting_types": ("core", "net"),
    "keyring": ("core", "settings"),
    "identity": ("core", "web"),
    "drivers": (
        "core",
        "net",
        "contracts",
        "warden_client",
        "warden",
    ),  # the warden is never called, its folder is mounted
    "domain_names": ("core", "contracts", "identity"),
    "events": ("core", "web", "identity"),  # streams of changes, which all layers record by `core.db`
    "slices": ("core", "net", "contracts", "warden_client", "web", "work", "identity", "domain_names"),
    "http": (
        *("core", "net", "contracts", "warden_client", "web", "identity", "domain_names", "events", "slices"),
        "package",
    ),
    "app": (
        *("core", "net", "contracts", "migrations", "web", "work", "settings", "keyring", "identity"),
        *("drivers", "domain_names", "events", "slices", "http", "package"),
    ),
    # The command line talks to a server, is one (`up`), or works beside one (`keys`): it never drives a part itself.
    "cli": (
        *("core", "contracts", "web", "config", "settings", "keyring", "identity", "slices", "http", "app"),
        "package",
    ),
    "main": ("cli",),
    "package": (),
}

GROUPS: Mapping[str, int] = {
    # group of slices: its rank; its slices import slices of lower groups, and of their own by RANKS
    "storage.content": 1,
    "storage.files": 2,
    "storage.gateways": 3,
    "storage.payments": 3,
    "storage.webhooks": 3,
    "storage.pins": 4,
    "storage.vectors": 4,
    "storage.compat": 5,
    "agents.registry": 1,
    "agents.chat": 2,
    "agents.setup": 2,
    "agents.network": 2,
    "agents.workspace": 2,
    "agents.models": 3,
    "agents.library": 3,
    "agents.lifecycle": 4,
}

RANKS: Mapping[str, int] = {
    # slice of a group that has several: its rank in the group; it imports lower ranks only, and never its equals
    "storage.content.unixfs": 1,
    "storage.content": 2,
    "storage.files.signed_urls": 1,
    "storage.files": 2,
    "storage.files.groups": 3,
    "storage.files.signatures": 3,
    "storage.files.uploads": 4,
    "storage.files.tus": 5,
    "storage.gateways": 1,
    "storage.gateways.swaps": 2,
    "storage.gateways.analytics": 2,
    "storage.payments.instructions": 1,
    "storage.payments": 2,
    "storage.pins": 1,
    "storage.vectors": 1,
    "storage.webhooks": 1,
    "storage.compat": 1,
    "agents.registry": 1,
    "agents.chat": 1,
    "agents.setup.secrets": 1,
    "agents.setup.channels": 1,
    "agents.setup.devices": 1,
    "agents.setup.runtime_config": 1,
    "agents.setup.tasks": 1,
    "agents.network.egress": 1,
    "agents.network.routes": 1,
    "agents.network.domains": 2,  # leads domains to the ports that routes may lead to
    "agents.network.sign_in": 1,
    "agents.workspace.files": 1,
    "agents.workspace.logs": 1,
    "agents.workspace.commands": 1,
    "agents.workspace.scripts": 1,
    "agents.workspace.snapshots": 2,
    "agents.workspace.git": 3,  # serves what snapshots commit
    "agents.models.gateway": 1,
    "agents.models.usage": 2,  # reports what the model gateway counted
    "agents.models.keys": 2,  # stores a key that works among the secrets
    "agents.models.servers": 2,  # attaches secrets, and shows the models that an agent is offered
    "agents.library.skills": 1,  # looks for the secrets that a skill wants
    "agents.library.hub": 2,  # publishes skills of libraries, and installs into them
    "agents.library.templates": 2,
    "agents.library.instances": 3,
    "agents.lifecycle.hosts": 1,
    "agents.lifecycle.system": 2,  # the servers, and the versions of engines
    "agents.lifecycle.versions": 1,
    "agents.lifecycle.key_revocation": 1,
    "agents.lifecycle.workflows": 2,
    "agents.lifecycle.archives": 3,
    "agents.lifecycle.self_service": 3,  # the agent's own view of itself and of what it may do on its owner's behalf
}

PRIVATE = ("store", "api")
"""Modules that only their own package imports. `http/` imports every `api`, because it mounts them."""

HTTP_MODULES = ("api", "schemas", "auth_request", "authenticator", "paths")
"""Modules of a slice or of identity that may know HTTP; `paths` are old ones of clients, a part of the URL map."""

SHARED_BY_DRIVERS: Mapping[str, str] = {
    # modules beside the contracts that a kind of driver offers to everybody
    "roost.drivers.blob.disk_files": "the files under drafts",
    "roost.drivers.blob.drafts": "files of this machine that become objects, the same under every store",
    "roost.drivers.embedding.similarity": "the exact search in vectors, the same under every model",
    "roost.drivers.sandbox.worker_pool": "workers of programs in sandboxes, the same for every program",
    "roost.drivers.sandbox.forked_requests": "the loop of those that answer each request in a process of its own",
    "roost.drivers.runtime.peer_contract": "the contract of calls between servers",
    "roost.drivers.git.manifest_contract": "the contract of manifests, which a slice stores",
    "roost.drivers.git.remote_contract": "the contract of repositories that tenants name by URL",
    "roost.drivers.model.chat": "the request and answer types that the contract speaks in",
    "roost.drivers.model.json_access": "careful reading of JSON that came from outside, for those types",
}


def layer_of(module: str) -> str:
    """Return the key of `LAYERS` for a module."""
    parts = module.split(".")
    if len(parts) == 1:
        return "package"
    if parts[1] == "__main__":
        return "main"
    if parts[1] == "drivers":
        return "contracts" if _is_contract(module) else "drivers"
    if parts[1] in ("agents", "storage"):
        return "slices"
    return parts[1]


def slice_of(module: str) -> str | None:
    """Return the slice of a module, such as `agents.setup.secrets`: the longest name in RANKS."""
    parts = module.split(".")[1:]
    names = (".".join(parts[:length]) for length in range(len(parts), 1, -1))
    return next((name for name in names if name in RANKS), None)


def group_of(module: str) -> str | None:
    """Return `agents.setup` for a module of that group."""
    parts = module.split(".")
    return ".".join(parts[1:3]) if parts[1:2] in (["agents"], ["storage"]) and len(parts) > 2 else None


def driver_kind(module: str) -> str | None:
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["drivers"] and len(parts) > 2 else None


def _is_contract(module: str) -> bool:
    parts = module.split(".")
    return len(parts) <= 3 or parts[3] in ("contract", "abilities") or module in SHARED_BY_DRIVERS
