"""The scripts in `manifest.json` at the root of the workspace.

The agent wrote the file, so it is untrusted: malformed content is an InvalidManifest with a reason.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from roost.agents.workspace.scripts.model import BUILD, START, InvalidManifest
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import PathRefused, WardenFileNotFound, WardenFileTooLarge, WardenNotAFile

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
    scripts = decode_manifest(raw).get("scripts")
    if scripts is None:
        return ManifestScripts()
    scripts = _parse_object(scripts, "scripts")
    digest = hashlib.sha256(raw).hexdigest()
    build, start = (parse_script(scripts.get(name), f"scripts.{name}", host) for name in (BUILD, START))
    return ManifestScripts(build, start, digest)


def decode_manifest(raw: bytes) -> dict[str, Any]:
    """Return the object in a manifest. Raises InvalidManifest."""
    try:
        manifest = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise InvalidManifest(f"{MANIFEST_PATH} is not valid JSON") from None
    return _parse_object(manifest, MANIFEST_PATH)


def encode_manifest(document: Mapping[str, Any]) -> bytes:
    """Return the bytes of a manifest as a file."""
    return f"{json.dumps(document, indent=2, ensure_ascii=False)}\n".encode()


def parse_script(text: object, where: str, host: str = HOST_PLACEHOLDER) -> str | None:
    """Return a script with the agent's public host filled in, None for a blank one. Raises InvalidManifest."""
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise InvalidManifest(f"{where} is not a string")
    text = text.replace(HOST_PLACEHOLDER, host)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidManifest(f"{where} is not valid text") from None
    if "\0" in text:
        raise InvalidManifest(f"{where} holds a NUL character")
    if size > SCRIPT_LIMIT:
        raise InvalidManifest(f"{where} is longer than {SCRIPT_LIMIT // 1024} KiB")
    return text if text.strip() else None


def _parse_object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidManifest(f"{name} is not an object")
    return cast("dict[str, Any]", value)
