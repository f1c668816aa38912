"""Commands and files of an agent, through its warden."""

from collections.abc import Awaitable, Callable, Mapping

from roost.agents.roster.errors import AgentNotRunning
from roost.agents.roster.reach import Reach
from roost.agents.roster.service import Roster
from roost.agents.workspace import model
from roost.agents.workspace.errors import (
    ExecutionFailed,
    FileTooLarge,
    InvalidCommand,
    InvalidPath,
    NoSuchFile,
    NotReadable,
)
from roost.agents.workspace.model import Ran, Uploaded
from roost.core import clock
from roost.core.sensitive import Sensitive
from roost.drivers.runtime import warden
from roost.drivers.runtime.contract import BoxGone

Variables = Callable[[str], Awaitable[Mapping[str, Sensitive[str]]]]
"""An agent's id to what its commands get into their environment."""


class Workspace:
    def __init__(self, roster: Roster, reach: Reach, variables: Variables) -> None:
        self._roster = roster
        self._reach = reach
        self._variables = variables

    async def run(self, agent_id: str, command: str, cwd: str | None = None, timeout: float | None = None) -> Ran:  # noqa: ASYNC109 - enforced in the box
        """Run a shell command in the box; `cwd` is a folder of the workspace, the time-out is in seconds.

        Raises InvalidCommand, ExecutionFailed, AgentNotRunning.
        """
        if not command.strip() or "\0" in command or len(command) > model.COMMAND_LIMIT or cwd == "":
            raise InvalidCommand
        await self._roster.get(agent_id)
        env = {name: value.reveal() for name, value in (await self._variables(agent_id)).items()}
        limit = min(timeout or model.EXEC_TIMEOUT, model.EXEC_TIMEOUT_LIMIT)
        try:
            result = await self._reach.warden(agent_id).exec(
                ["/bin/sh", "-c", command], cwd=cwd, env=env, timeout=limit, output_limit=model.OUTPUT_LIMIT
            )
        except (warden.ExecRefused, warden.PathRefused, warden.FileMissing):
            raise InvalidCommand from None
        except BoxGone:
            raise AgentNotRunning from None
        except warden.WardenFailed:
            raise ExecutionFailed from None
        return Ran(
            stdout=result.stdout.decode("utf-8", "replace"),
            stderr=result.stderr.decode("utf-8", "replace"),
            exit_code=result.exit_code,
            command=command,
            timestamp=clock.now(),
            truncated=result.truncated,
            timed_out=result.timed_out,
        )

    async def read(self, agent_id: str, path: str) -> bytes:
        """A file of the workspace. Raises InvalidPath, NoSuchFile, NotReadable, FileTooLarge, AgentNotRunning."""
        path = model.checked_path(path)
        await self._roster.get(agent_id)
        try:
            return await self._reach.warden(agent_id).read(path, limit=model.FILE_LIMIT)
        except (warden.FileMissing, warden.PathRefused):  # a link that leads out is told apart from nothing by nobody
            raise NoSuchFile from None
        except warden.NotAFile:
            raise NotReadable from None
        except warden.FileTooLarge:
            raise FileTooLarge from None
        except BoxGone:
            raise AgentNotRunning from None

    async def upload(self, agent_id: str, filename: str, content: str) -> Uploaded:
        """Put a base64 file into `uploads/`; one of the same name is replaced.

        Raises InvalidFilename, InvalidContent, FileTooLarge, InvalidPath, AgentNotRunning.
        """
        path = f"{model.UPLOADS}/{model.checked_filename(filename)}"
        data = model.decoded(content)
        await self._roster.get(agent_id)
        try:
            await self._reach.warden(agent_id).write(path, data)
        except (warden.PathRefused, warden.NotAFile):  # the agent made `uploads` something else than a folder
            raise InvalidPath from None
        except BoxGone:
            raise AgentNotRunning from None
        return Uploaded(path, filename, len(data))
