"""Terminals of an agent, through its warden, which keeps the sessions: they outlive a restart of the server, too."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotRunning
from roost.agents.workspace.commands.service import InvalidCommand
from roost.core.problem import InvalidInput, NotFound, Problem, ResourceConflict, TooManyRequests
from roost.core.sensitive import Sensitive
from roost.warden_client import errors as warden_errors
from roost.warden_client.errors import ContainerNotRunning
from roost.warden_client.terminal import AttachedTerminal, TerminalSize

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


class InvalidTerminalMessage(InvalidInput):
    message = "Invalid message"


class TerminalSessionNotFound(NotFound):
    """The session has ended, or the agent's container was replaced."""

    message = "Terminal session not found"


class TerminalSessionTaken(ResourceConflict):
    message = "Another client has connected to the terminal session"


class TooManyTerminals(TooManyRequests):
    message = "The agent has too many open terminals"


class TerminalUnsupported(ResourceConflict):
    """The container runs since before an update of the server that brought terminals."""

    message = "The agent's container is older than the server: stop the server with its agents, and start it again"


class TerminalFailed(Problem):
    message = "The terminal failed"


LoadVariables = Callable[[str], Awaitable[Mapping[str, Sensitive[str]]]]
"""Returns the environment variables of an agent's programs by the agent's id."""


class TerminalService:
    def __init__(self, runtimes: AgentRuntimes, load_variables: LoadVariables) -> None:
        self._agents = runtimes.agents
        self._runtimes = runtimes
        self._load_variables = load_variables
        self.record_use = runtimes.record_use

    @asynccontextmanager
    async def connect(self, agent_id: str, request: TerminalRequest) -> AsyncGenerator[AttachedTerminal, None]:
        """Open a terminal in the agent's workspace, or continue a session.

        Raises AgentNotFound, AgentOnOtherHost, AgentNotRunning, and all errors of this slice, also while it is open.
        """
        await self._agents.get_here(agent_id)
        self.record_use(agent_id)
        terminals = self._runtimes.get_warden(agent_id).terminals
        with _terminal_errors():
            if request.session is not None:
                connection = terminals.attach(request.session, after=request.after, size=request.size)
            else:
                env = {name: value.reveal() for name, value in (await self._load_variables(agent_id)).items()}
                connection = terminals.open(
                    terminal_arguments(_check_command(request.command)),
                    env=terminal_environment(env),
                    size=request.size,
                    grace_seconds=GRACE_SECONDS,
                )
            async with connection as terminal:
                yield terminal


def _check_command(command: str | None) -> str | None:
    if command is not None and (not command.strip() or "\0" in command):
        raise InvalidCommand(detail="command: must not be empty, and have no NUL")
    return command


@contextmanager
def _terminal_errors() -> Generator[None]:
    """Raise the errors of the API for those of a terminal's warden."""
    try:
        yield
    except warden_errors.ExecRefused:
        raise InvalidCommand from None
    except warden_errors.WardenTerminalNotFound:
        raise TerminalSessionNotFound from None
    except warden_errors.WardenTerminalTaken:
        raise TerminalSessionTaken from None
    except warden_errors.WardenBusy:
        raise TooManyTerminals from None
    except warden_errors.WardenRequestUnknown:
        raise TerminalUnsupported from None
    except (ContainerNotRunning, warden_errors.WardenDisconnected):
        raise AgentNotRunning from None
    except warden_errors.WardenFailed:
        raise TerminalFailed from None
