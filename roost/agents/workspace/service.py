"""Commands and files of an agent, through its warden."""

from collections.abc import Awaitable, Callable, Mapping

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotRunning
from roost.agents.registry.repository import AgentRepository
from roost.agents.workspace import model
from roost.agents.workspace.errors import (
    CommandExecutionFailed,
    InvalidCommand,
    InvalidFilePath,
    WorkspaceFileNotFound,
    WorkspaceFileTooLarge,
    WorkspaceFileUnreadable,
)
from roost.agents.workspace.model import CommandResult, UploadedFile
from roost.core import clock
from roost.core.sensitive import Sensitive
from roost.drivers.runtime import warden_client
from roost.drivers.runtime.contract import ContainerNotRunning

Variables = Callable[[str], Awaitable[Mapping[str, Sensitive[str]]]]
"""An agent's id to what its commands get into their environment."""


class WorkspaceService:
    def __init__(self, roster: AgentRepository, reach: AgentRuntimes, variables: Variables) -> None:
        self._roster = roster
        self._reach = reach
        self._variables = variables

    async def run(
        self,
        agent_id: str,
        command: str,
        cwd: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - enforced in the container
    ) -> CommandResult:
        """Run a shell command in the container; `cwd` is a folder of the workspace, the time-out is in seconds.

        Raises InvalidCommand, ExecutionFailed, AgentNotRunning.
        """
        if not command.strip() or "\0" in command or len(command) > model.COMMAND_LIMIT or cwd == "":
            raise InvalidCommand
        await self._roster.get(agent_id)
        env = {name: value.reveal() for name, value in (await self._variables(agent_id)).items()}
        limit = min(timeout or model.EXEC_TIMEOUT, model.EXEC_TIMEOUT_LIMIT)
        try:
            result = await self._reach.get_warden(agent_id).exec(
                ["/bin/sh", "-c", command], cwd=cwd, env=env, timeout=limit, output_limit=model.OUTPUT_LIMIT
            )
        except (warden_client.ExecRefused, warden_client.PathRefused, warden_client.WardenFileNotFound):
            raise InvalidCommand from None
        except ContainerNotRunning:
            raise AgentNotRunning from None
        except warden_client.WardenFailed:
            raise CommandExecutionFailed from None
        return CommandResult(
            stdout=result.stdout.decode("utf-8", "replace"),
            stderr=result.stderr.decode("utf-8", "replace"),
            exit_code=result.exit_code,
            command=command,
            timestamp=clock.utc_now(),
            truncated=result.truncated,
            timed_out=result.timed_out,
        )

    async def read(self, agent_id: str, path: str) -> bytes:
        """Read a file of the workspace. Raises InvalidPath, NoSuchFile, NotReadable, FileTooLarge, AgentNotRunning."""
        path = model.checked_path(path)
        await self._roster.get(agent_id)
        try:
            return await self._reach.get_warden(agent_id).read(path, limit=model.FILE_LIMIT)
        except (
            warden_client.WardenFileNotFound,
            warden_client.PathRefused,
        ):  # a link that leads out is told apart from nothing by nobody
            raise WorkspaceFileNotFound from None
        except warden_client.WardenNotAFile:
            raise WorkspaceFileUnreadable from None
        except warden_client.WardenFileTooLarge:
            raise WorkspaceFileTooLarge from None
        except ContainerNotRunning:
            raise AgentNotRunning from None

    async def upload(self, agent_id: str, filename: str, content: str) -> UploadedFile:
        """Put a base64 file into `uploads/`; one of the same name is replaced.

        Raises InvalidFilename, InvalidContent, FileTooLarge, InvalidPath, AgentNotRunning.
        """
        path = f"{model.UPLOADS}/{model.checked_filename(filename)}"
        data = model.decode_content(content)
        await self._roster.get(agent_id)
        try:
            await self._reach.get_warden(agent_id).write(path, data)
        except (
            warden_client.PathRefused,
            warden_client.WardenNotAFile,
        ):  # the agent made `uploads` something else than a folder
            raise InvalidFilePath from None
        except ContainerNotRunning:
            raise AgentNotRunning from None
        return UploadedFile(path, filename, len(data))
