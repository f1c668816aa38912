"""The scripts of a manifest: `manifest.json` at the root of the workspace, as far as they need it.

An agent wrote it: whatever is not what it should be is a BadManifest with a reason. Nothing else of it is looked at.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, cast

from roost.agents.scripts.errors import InvalidManifest
from roost.drivers.runtime.warden_client import (
    PathRefused,
    WardenClient,
    WardenFileNotFound,
    WardenFileTooLarge,
    WardenNotAFile,
)

PATH = "manifest.json"
LIMIT = 1024**2
SCRIPT_LIMIT = 64 * 1024
HOST = "__AGENT_HOST__"


@dataclass(frozen=True)
class ManifestScripts:
    """Command lines for a shell; None for one that there is not. `digest` tells one manifest from another."""

    build: str | None = None
    start: str | None = None
    digest: str = ""


async def read(warden: WardenClient, host: str) -> ManifestScripts:
    """The scripts of the agent, with its public host filled in. Raises BadManifest, and what the warden raises."""
    try:
        return parse(await warden.read(PATH, limit=LIMIT), host)
    except WardenFileNotFound:
        return ManifestScripts()
    except WardenFileTooLarge:
        raise InvalidManifest(f"{PATH} is larger than {LIMIT // 1024**2} MiB") from None
    except WardenNotAFile:
        raise InvalidManifest(f"{PATH} is not a regular file") from None
    except PathRefused:
        raise InvalidManifest(f"{PATH} leads out of the workspace") from None


def parse(raw: bytes, host: str) -> ManifestScripts:
    """Raises BadManifest."""
    try:
        found = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise InvalidManifest(f"{PATH} is not valid JSON") from None
    scripts = _object(found, PATH).get("scripts")
    if scripts is None:
        return ManifestScripts()
    scripts = _object(scripts, "scripts")
    digest = hashlib.sha256(raw).hexdigest()
    return ManifestScripts(_script(scripts, "build", host), _script(scripts, "start", host), digest)


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidManifest(f"{what} is not an object")
    return cast("dict[str, Any]", value)


def _script(scripts: dict[str, Any], name: str, host: str) -> str | None:
    text = scripts.get(name)
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise InvalidManifest(f"scripts.{name} is not a string")
    text = text.replace(HOST, host)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidManifest(f"scripts.{name} is not valid text") from None
    if "\0" in text:
        raise InvalidManifest(f"scripts.{name} holds a NUL character")
    if size > SCRIPT_LIMIT:
        raise InvalidManifest(f"scripts.{name} is longer than {SCRIPT_LIMIT // 1024} KiB")
    return text if text.strip() else None
