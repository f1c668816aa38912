"""Result and limits of commands."""

from dataclasses import dataclass
from datetime import datetime

COMMAND_LIMIT = 64 * 1024
OUTPUT_LIMIT = 1024**2
EXEC_TIMEOUT = 60.0
EXEC_TIMEOUT_LIMIT = 600.0


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
