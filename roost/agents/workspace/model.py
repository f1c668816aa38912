"""Results and limits of commands and files, and validation of paths, file names and base64."""

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import datetime

from roost.agents.workspace.errors import InvalidFileContent, InvalidFilename, InvalidFilePath, WorkspaceFileTooLarge

FILE_LIMIT = 10 * 1024**2
COMMAND_LIMIT = 64 * 1024
OUTPUT_LIMIT = 1024**2
EXEC_TIMEOUT = 60.0
EXEC_TIMEOUT_LIMIT = 600.0
UPLOADS = "uploads"

_NAME_BYTES = 255
_PATH_BYTES = 4096
_WINDOWS_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")


@dataclass(frozen=True)
class CommandResult:
    """Result of a command. Exit code 124 means that it timed out, `truncated` that an output exceeded 1 MiB."""

    stdout: str
    stderr: str
    exit_code: int
    command: str
    timestamp: datetime
    truncated: bool
    timed_out: bool


@dataclass(frozen=True)
class UploadedFile:
    path: str
    filename: str
    size: int


def validate_path(path: str) -> str:
    """Return the path relative to the workspace. Raises InvalidFilePath.

    A leading `/workspace/` is removed, because agents see the workspace at that path.
    """
    path = path.removeprefix("/workspace/")
    parts = path.split("/")
    if not path or len(path.encode("utf-8", "replace")) > _PATH_BYTES or path.startswith("/") or ".." in parts:
        raise InvalidFilePath
    if any(char in path for char in "\\\0") or not path.isprintable():
        raise InvalidFilePath
    return path


def validate_filename(name: str) -> str:
    """Return a file name without folders that is valid on every operating system. Raises InvalidFilename."""
    too_long = len(name.encode("utf-8", "replace")) > _NAME_BYTES
    if not name or too_long or name != name.strip() or name.endswith(".") or not name.isprintable():
        raise InvalidFilename
    if any(char in name for char in '/\\<>:"|?*') or name.lower() == ".git" or _WINDOWS_DEVICES.fullmatch(name):
        raise InvalidFilename
    return name


def decode_content(content: str) -> bytes:
    """Decode strict base64 (RFC 4648 section 4, no white space). Raises InvalidFileContent, WorkspaceFileTooLarge."""
    if len(content) > FILE_LIMIT * 4 // 3 + 4:
        raise WorkspaceFileTooLarge
    try:
        content_bytes = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidFileContent from None
    if len(content_bytes) > FILE_LIMIT:
        raise WorkspaceFileTooLarge
    return content_bytes
