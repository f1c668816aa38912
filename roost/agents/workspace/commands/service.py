"""Commands of an agent, through its warden."""

import codecs
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotRunning
from roost.core import clock
from roost.core.problem import InvalidInput, Problem
from roost.core.sensitive import Sensitive
from roost.warden_client import errors as warden_errors
from roost.warden_client.client import ExecOutput
from roost.warden_client.errors import ContainerNotRunning

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


class InvalidCommand(InvalidInput):
    """An empty command, or a working directory that is not a folder of the workspace."""

    message = "Invalid command"


class CommandExecutionFailed(Problem):
    message = "Execution failed"


LoadEnvironment = Callable[[str], Awaitable[Mapping[str, Sensitive[str]]]]
"""Returns the environment variables of an agent's commands by the agent's id."""


class _ExecArguments(TypedDict):
    argv: Sequence[str]
    cwd: str | None
    env: Mapping[str, str]
    timeout: float


class CommandService:
    def __init__(self, runtimes: AgentRuntimes, load_environment: LoadEnvironment) -> None:
        self._agents = runtimes.agents
        self._runtimes = runtimes
        self._load_environment = load_environment

    async def run_command(
        self,
        agent_id: str,
        command: str,
        cwd: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - enforced in the container
    ) -> CommandResult:
        """Run a shell command in the container; `cwd` is a folder of the workspace, `timeout` is in seconds.

        Raises AgentNotFound, AgentOnOtherHost, InvalidCommand, CommandExecutionFailed, AgentNotRunning.
        """
        arguments = await self._prepare_command(agent_id, command, cwd, timeout)
        with _command_errors():
            result = await self._runtimes.get_warden(agent_id).exec(**arguments, output_limit=OUTPUT_LIMIT)
        return CommandResult(
            stdout=_decode(result.stdout, is_cut=result.truncated),
            stderr=_decode(result.stderr, is_cut=result.truncated),
            exit_code=result.exit_code,
            command=command,
            timestamp=clock.utc_now(),
            truncated=result.truncated,
            timed_out=result.timed_out,
        )

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
        with _command_errors():
            async with self._runtimes.get_warden(agent_id).exec_stream(**arguments, stdin=stdin) as outputs:
                yield outputs

    async def _prepare_command(
        self, agent_id: str, command: str, cwd: str | None, seconds: float | None
    ) -> _ExecArguments:
        """Return the arguments of the warden's `exec`. Raises InvalidCommand, AgentNotFound, AgentOnOtherHost."""
        if not command.strip() or "\0" in command or len(command) > COMMAND_LIMIT or cwd == "":
            raise InvalidCommand(
                detail=f"command: must be 1 to {COMMAND_LIMIT:,} characters, without NUL; cwd: must not be empty"
            )
        await self._agents.get_here(agent_id)
        self._runtimes.record_use(agent_id)
        env = {name: value.reveal() for name, value in (await self._load_environment(agent_id)).items()}
        limit = min(seconds or EXEC_TIMEOUT, EXEC_TIMEOUT_LIMIT)
        return {"argv": ["/bin/sh", "-c", command], "cwd": cwd, "env": env, "timeout": limit}


@contextmanager
def _command_errors() -> Generator[None]:
    """Raise the errors of the API for those of a command's warden."""
    try:
        yield
    except (warden_errors.ExecRefused, warden_errors.PathRefused, warden_errors.WardenFileNotFound):
        raise InvalidCommand(detail="cwd: must be a folder of the workspace") from None
    except (ContainerNotRunning, warden_errors.WardenDisconnected):
        raise AgentNotRunning from None
    except warden_errors.WardenFailed:
        raise CommandExecutionFailed from None


def _decode(output: bytes, *, is_cut: bool) -> str:
    """Decode output, without the character that its cut end divides."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(output, not is_cut)
