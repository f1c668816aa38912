"""Terminals of an agent, through its warden, which keeps the sessions: they outlive a restart of the server, too."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotRunning
from roost.agents.workspace.commands.errors import InvalidCommand
from roost.agents.workspace.terminals import model
from roost.agents.workspace.terminals.errors import (
    TerminalFailed,
    TerminalSessionNotFound,
    TerminalSessionTaken,
    TerminalUnsupported,
    TooManyTerminals,
)
from roost.agents.workspace.terminals.model import TerminalRequest
from roost.core.sensitive import Sensitive
from roost.warden_client import errors as warden_errors
from roost.warden_client.errors import ContainerNotRunning
from roost.warden_client.terminal import AttachedTerminal

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
                    model.terminal_arguments(_check_command(request.command)),
                    env=model.terminal_environment(env),
                    size=request.size,
                    grace_seconds=model.GRACE_SECONDS,
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
