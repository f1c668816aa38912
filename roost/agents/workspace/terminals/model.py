"""Limits and programs of terminals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from roost.warden_client.terminal import TerminalSize

GRACE_SECONDS = 60.0
"""How long a session waits for its client to come back."""
SIZE_LIMIT = 1000
COMMAND_LIMIT = 8 * 1024
OFFSET_LIMIT = 2**53

_LOGIN_SHELL = """
unset NO_COLOR
SHELL=$(command -v bash || command -v sh) && export SHELL
exec "$SHELL" -l
"""
_VARIABLES = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", "NO_COLOR": ""}


class TerminalSignal(StrEnum):
    """Signals that a client may send to the foreground processes."""

    HUP = "HUP"
    INT = "INT"
    QUIT = "QUIT"
    KILL = "KILL"
    TERM = "TERM"
    CONT = "CONT"
    TSTP = "TSTP"


@dataclass(frozen=True)
class TerminalRequest:
    """A new terminal with a shell or a command, or a running `session` from the offset `after` of its output."""

    size: TerminalSize
    command: str | None = None
    session: str | None = None
    after: int = 0


def terminal_arguments(command: str | None) -> Sequence[str]:
    """Return the program of a terminal: a shell command, or bash as a login shell, sh where there is none."""
    return ["/bin/sh", "-c", _LOGIN_SHELL if command is None else command]


def terminal_environment(variables: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment of a terminal, in which the agent's own variables take precedence."""
    return {**_VARIABLES, **variables}
