"""Commands and terminals of an agent, through its warden.

The warden keeps the sessions of terminals: they outlive a restart of the server, too.
"""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Literal, TypedDict

from roost.agents.registry.agent_runtimes import AgentRuntimes, LoadValues, WardenProblems, translate_warden_errors
from roost.core.problem import InvalidInput, NotFound, Problem, ResourceConflict, TooManyRequests
from roost.warden_client import errors as warden_errors
from roost.warden_client.client import ExecOutput, ExecResult
from roost.warden_client.terminal import AttachedTerminal, TerminalSize

COMMAND_LIMIT = 64 * 1024
OUTPUT_LIMIT = 1024**2
EXEC_TIMEOUT = 60.0
EXEC_TIMEOUT_LIMIT = 600.0


class InvalidCommand(InvalidInput):
    """An empty command, or a working directory that is not a folder of the workspace."""

    message = "Invalid command"


class CommandExecutionFailed(Problem):
    message = "Execution failed"


GRACE_SECONDS = 60.0
"""How long a session waits for its client to come back."""
SIZE_LIMIT = 1000
TERMINAL_COMMAND_LIMIT = 8 * 1024
OFFSET_LIMIT = 2**53

# The program of a terminal without a command: bash, or sh where there is none.
_LOGIN_SHELL = """
unset NO_COLOR
SHELL=$(command -v bash || command -v sh) && export SHELL
exec "$SHELL" -l
"""
_TERMINAL_VARIABLES = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", "NO_COLOR": ""}


TerminalSignal = Literal["HUP", "INT", "QUIT", "KILL", "TERM", "CONT", "TSTP"]
"""Signals that a client may send to the foreground processes."""


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


class _ExecArguments(TypedDict):
    argv: Sequence[str]
    cwd: str | None
    env: Mapping[str, str]
    timeout: float


class CommandService:
    def __init__(self, runtimes: AgentRuntimes, load_environment: LoadValues) -> None:
        self._agents = runtimes.agents
        self._runtimes = runtimes
        self._load_environment = load_environment
        self.record_use = runtimes.record_use

    async def run_command(
        self,
        agent_id: str,
        command: str,
        cwd: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - enforced in the container
    ) -> ExecResult:
        """Run a shell command in the container; `cwd` is a folder of the workspace, `timeout` is in seconds.

        Each output is cut after 1 MiB. Raises AgentNotFound, AgentOnOtherHost, InvalidCommand, CommandExecutionFailed
        and AgentNotRunning.
        """
        arguments = await self._prepare_command(agent_id, command, cwd, timeout)
        with translate_warden_errors(_COMMAND_PROBLEMS):
            return await self._runtimes.get_warden(agent_id).exec(**arguments, output_limit=OUTPUT_LIMIT)

    @asynccontextmanager
    async def stream_command(
        self,
        stdin: AsyncIterable[bytes] | None,
        agent_id: str,
        command: str,
        cwd: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - enforced in the container
    ) -> AsyncGenerator[AsyncIterator[ExecOutput], None]:
        """Run a command as `run_command`, but with input and output as streams; leaving the context kills it."""
        arguments = await self._prepare_command(agent_id, command, cwd, timeout)
        with translate_warden_errors(_COMMAND_PROBLEMS):
            async with self._runtimes.get_warden(agent_id).exec_stream(**arguments, stdin=stdin) as outputs:
                yield outputs

    @asynccontextmanager
    async def open_terminal(
        self, agent_id: str, size: TerminalSize, command: str | None = None, session: str | None = None, after: int = 0
    ) -> AsyncGenerator[AttachedTerminal, None]:
        """Open a terminal with a shell or a command, or continue a session from the offset `after` of its output.

        Raises AgentNotFound, AgentOnOtherHost, AgentNotRunning, InvalidCommand and the errors of terminals, also while
        it is open.
        """
        await self._agents.get_here(agent_id)
        self.record_use(agent_id)
        terminals = self._runtimes.get_warden(agent_id).terminals
        with translate_warden_errors(_TERMINAL_PROBLEMS):
            if session is not None:
                connection = terminals.attach(session, after=after, size=size)
            else:
                env = await self._reveal_environment(agent_id)
                if command is not None and (not command.strip() or "\0" in command):
                    raise InvalidCommand(detail="command: must not be empty, and have no NUL")
                connection = terminals.open(
                    ["/bin/sh", "-c", _LOGIN_SHELL if command is None else command],
                    env={**_TERMINAL_VARIABLES, **env},
                    size=size,
                    grace_seconds=GRACE_SECONDS,
                )
            async with connection as terminal:
                yield terminal

    async def _prepare_command(
        self, agent_id: str, command: str, cwd: str | None, seconds: float | None
    ) -> _ExecArguments:
        """Return the arguments of the warden's `exec`. Raises InvalidCommand, AgentNotFound, AgentOnOtherHost."""
        if not command.strip() or "\0" in command or len(command) > COMMAND_LIMIT or cwd == "":
            raise InvalidCommand(
                detail=f"command: must be 1 to {COMMAND_LIMIT:,} characters, without NUL; cwd: must not be empty"
            )
        await self._agents.get_here(agent_id)
        self.record_use(agent_id)
        env = await self._reveal_environment(agent_id)
        limit = min(seconds or EXEC_TIMEOUT, EXEC_TIMEOUT_LIMIT)
        return {"argv": ["/bin/sh", "-c", command], "cwd": cwd, "env": env, "timeout": limit}

    async def _reveal_environment(self, agent_id: str) -> dict[str, str]:
        return {name: value.reveal() for name, value in (await self._load_environment(agent_id)).items()}


_FOLDER_PROBLEM = partial(InvalidCommand, detail="cwd: must be a folder of the workspace")
_COMMAND_PROBLEMS: WardenProblems = {
    warden_errors.ExecRefused: _FOLDER_PROBLEM,
    warden_errors.PathRefused: _FOLDER_PROBLEM,
    warden_errors.WardenFileNotFound: _FOLDER_PROBLEM,
    warden_errors.WardenFailed: CommandExecutionFailed,
}
_TERMINAL_PROBLEMS: WardenProblems = {
    warden_errors.ExecRefused: InvalidCommand,
    warden_errors.WardenTerminalNotFound: TerminalSessionNotFound,
    warden_errors.WardenTerminalTaken: TerminalSessionTaken,
    warden_errors.WardenBusy: TooManyTerminals,
    warden_errors.WardenRequestUnknown: TerminalUnsupported,
    warden_errors.WardenFailed: TerminalFailed,
}
