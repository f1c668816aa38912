"""Order of the layers. A new edge or a higher rank is a line here, with its reason, for a reviewer to weigh."""

from collections.abc import Mapping

LAYERS: Mapping[str, tuple[str, ...]] = {
    # layer: the layers that it may import besides itself
    "core": (),
    "warden": (),  # mounted alone into containers: the standard library and itself
    "net": ("core",),
    "contracts": ("core", "net"),
    "migrations": ("core",),
    "web": ("core",),
    "work": ("core",),
    "config": ("settings", "setting_types"),
    "settings": ("core", "net", "contracts", "setting_types"),
    "setting_types": ("core", "net"),
    "keyring": ("core", "settings"),
    "identity": ("core", "web"),
    "drivers": ("core", "net", "contracts", "warden"),  # the warden is never called, its folder is mounted
    "domains": ("core", "contracts", "identity"),
    "events": ("core", "web", "identity"),  # streams of changes, which all layers record by `core.db`
    "slices": ("core", "net", "contracts", "web", "work", "identity", "domains"),
    "hosts": ("core", "net", "contracts", "web", "identity", "domains", "events", "slices", "package"),
    "app": (
        *("core", "net", "contracts", "migrations", "web", "work", "settings", "keyring", "identity"),
        *("drivers", "domains", "events", "slices", "hosts", "package"),
    ),
    # The command line talks to a server, is one (`up`), or works beside one (`keys`): it never drives a part itself.
    "cli": (
        *("core", "contracts", "web", "config", "settings", "keyring", "identity", "slices", "hosts", "app"),
        "package",
    ),
    "main": ("cli",),
    "package": (),
}

RANKS: Mapping[str, int] = {
    # slice: its rank; it imports lower ranks only, and never its equals
    "storage.unixfs": 1,
    "storage.content": 2,
    "storage.signed_urls": 3,
    "storage.files": 4,
    "storage.gateways": 5,
    "storage.groups": 5,
    "storage.payment_instructions": 5,
    "storage.payments": 6,
    "storage.signatures": 5,
    "storage.webhooks": 5,
    "storage.swaps": 6,
    "storage.analytics": 6,
    "storage.uploads": 6,
    "storage.pins": 7,
    "storage.tus": 7,
    "storage.vectors": 7,
    "storage.compat": 8,
    "agents.registry": 1,
    "agents.hosts": 2,
    "agents.system": 3,  # the servers, and the versions of engines
    "agents.egress": 2,
    "agents.logs": 2,
    "agents.models": 2,
    "agents.chat": 2,
    "agents.usage": 3,  # reports what the model gateway counted
    "agents.commands": 2,
    "agents.terminals": 3,  # a terminal runs a command, with its errors
    "agents.secrets": 2,
    "agents.channels": 2,
    "agents.devices": 2,
    "agents.runtime_config": 2,
    "agents.tasks": 2,
    "agents.scripts": 2,
    "agents.routes": 2,
    "agents.domains": 3,  # leads domains to the ports that routes may lead to
    "agents.sign_in": 1,
    "agents.key_revocation": 2,
    "agents.versions": 2,
    "agents.files": 2,
    "agents.hub": 4,  # publishes skills of libraries, and installs into them
    "agents.skills": 3,  # looks for the secrets that a skill wants
    "agents.model_keys": 3,  # stores a key that works among the secrets
    "agents.model_servers": 3,  # attaches secrets, and shows the models that an agent is offered
    "agents.snapshots": 3,
    "agents.git": 3,
    "agents.templates": 3,
    "agents.template_instances": 4,
    "agents.lifecycle": 5,
    "agents.archives": 6,
    "agents.platform": 6,  # the agent's own view of itself and of what it may do on its owner's behalf
}

PRIVATE = ("store", "api")
"""Modules that only their own package imports. `hosts/` imports every `api`, because it mounts them."""

HTTP_MODULES = ("api", "schemas", "auth_request", "authenticator")
"""Modules of a slice or of identity that may know HTTP."""

SHARED_BY_DRIVERS: Mapping[str, str] = {
    # modules beside the contracts that a kind of driver offers to everybody
    "roost.drivers.blob.disk_files": "the files under drafts",
    "roost.drivers.blob.drafts": "files of this machine that become objects, the same under every store",
    "roost.drivers.runtime.warden_client": "the client of the warden, the same under every runtime",
    "roost.drivers.runtime.warden_files": "its part for files",
    "roost.drivers.runtime.warden_tree": "its part for whole trees",
    "roost.drivers.runtime.warden_terminal": "its part for terminals",
    "roost.drivers.runtime.warden_changes": "changes of a tree",
    "roost.drivers.runtime.tree_rules": "what a workspace can carry, the same under every runtime",
    "roost.drivers.runtime.warden_connection": "its requests and replies",
    "roost.drivers.runtime.warden_errors": "the errors of the warden, the same under every runtime",
    "roost.drivers.embedding.similarity": "the exact search in vectors, the same under every model",
    "roost.drivers.sandbox.worker_pool": "workers of programs in sandboxes, the same for every program",
    "roost.drivers.sandbox.packages": "folders of installed packages, for those programs",
    "roost.drivers.sandbox.forked_requests": "the loop of those that answer each request in a process of its own",
    "roost.drivers.git.git_names": "names that commits leave out, the same for every repository",
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
    """`agents.registry` for a module of that slice."""
    parts = module.split(".")
    return ".".join(parts[1:3]) if parts[1:2] in (["agents"], ["storage"]) and len(parts) > 2 else None


def driver_kind(module: str) -> str | None:
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["drivers"] and len(parts) > 2 else None


def _is_contract(module: str) -> bool:
    parts = module.split(".")
    return len(parts) <= 3 or parts[3] in ("contract", "abilities") or module in SHARED_BY_DRIVERS
