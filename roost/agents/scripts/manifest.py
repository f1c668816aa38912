"""The scripts in `manifest.json` at the root of the workspace.

The agent wrote the file, so it is untrusted: malformed content is an InvalidManifest with a reason.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any, cast

from roost.agents.scripts.errors import InvalidManifest
from roost.drivers.runtime.warden_client import WardenClient
from roost.drivers.runtime.warden_errors import PathRefused, WardenFileNotFound, WardenFileTooLarge, WardenNotAFile

MANIFEST_PATH = "manifest.json"
MANIFEST_LIMIT = 1024**2
SCRIPT_LIMIT = 64 * 1024
HOST_PLACEHOLDER = "__AGENT_HOST__"


@dataclass(frozen=True)
class ManifestScripts:
    """Shell commands, None if missing; `digest` identifies the manifest."""

    build: str | None = None
    start: str | None = None
    digest: str = ""


async def read_manifest(warden: WardenClient, host: str) -> ManifestScripts:
    """Read the agent's scripts and fill in its public host. Raises InvalidManifest and the warden's errors."""
    try:
        return parse_manifest(await warden.read(MANIFEST_PATH, limit=MANIFEST_LIMIT), host)
    except WardenFileNotFound:
        return ManifestScripts()
    except WardenFileTooLarge:
        raise InvalidManifest(f"{MANIFEST_PATH} is larger than {MANIFEST_LIMIT // 1024**2} MiB") from None
    except WardenNotAFile:
        raise InvalidManifest(f"{MANIFEST_PATH} is not a regular file") from None
    except PathRefused:
        raise InvalidManifest(f"{MANIFEST_PATH} leads out of the workspace") from None


def parse_manifest(raw: bytes, host: str) -> ManifestScripts:
    """Parse a manifest and fill in the agent's public host. Raises InvalidManifest."""
    try:
        manifest = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise InvalidManifest(f"{MANIFEST_PATH} is not valid JSON") from None
    scripts = _parse_object(manifest, MANIFEST_PATH).get("scripts")
    if scripts is None:
        return ManifestScripts()
    scripts = _parse_object(scripts, "scripts")
    digest = hashlib.sha256(raw).hexdigest()
    return ManifestScripts(_parse_script(scripts, "build", host), _parse_script(scripts, "start", host), digest)


def _parse_object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidManifest(f"{name} is not an object")
    return cast("dict[str, Any]", value)


def _parse_script(scripts: dict[str, Any], name: str, host: str) -> str | None:
    text = scripts.get(name)
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise InvalidManifest(f"scripts.{name} is not a string")
    text = text.replace(HOST_PLACEHOLDER, host)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidManifest(f"scripts.{name} is not valid text") from None
    if "\0" in text:
        raise InvalidManifest(f"scripts.{name} holds a NUL character")
    if size > SCRIPT_LIMIT:
        raise InvalidManifest(f"scripts.{name} is longer than {SCRIPT_LIMIT // 1024} KiB")
    return text if text.strip() else None
