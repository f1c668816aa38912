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
from roost.drivers.runtime import warden_errors
from roost.drivers.runtime.contract import ContainerNotRunning

LoadEnvironment = Callable[[str], Awaitable[Mapping[str, Sensitive[str]]]]
"""Returns the environment variables of an agent's commands by the agent's id."""


class WorkspaceService:
    def __init__(self, agents: AgentRepository, runtimes: AgentRuntimes, load_environment: LoadEnvironment) -> None:
        self._agents = agents
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
        if not command.strip() or "\0" in command or len(command) > model.COMMAND_LIMIT or cwd == "":
            raise InvalidCommand
        await self._agents.get_here(agent_id)
        env = {name: value.reveal() for name, value in (await self._load_environment(agent_id)).items()}
        limit = min(timeout or model.EXEC_TIMEOUT, model.EXEC_TIMEOUT_LIMIT)
        try:
            result = await self._runtimes.get_warden(agent_id).exec(
                ["/bin/sh", "-c", command], cwd=cwd, env=env, timeout=limit, output_limit=model.OUTPUT_LIMIT
            )
        except (warden_errors.ExecRefused, warden_errors.PathRefused, warden_errors.WardenFileNotFound):
            raise InvalidCommand from None
        except (ContainerNotRunning, warden_errors.WardenDisconnected):
            raise AgentNotRunning from None
        except warden_errors.WardenFailed:
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

    async def read_file(self, agent_id: str, path: str) -> bytes:
        """Return the content of a file of the workspace.

        Raises AgentNotFound, AgentOnOtherHost, AgentNotRunning, InvalidFilePath, and WorkspaceFileNotFound,
        WorkspaceFileUnreadable, WorkspaceFileTooLarge. A link that leads out of the workspace is a missing file.
        """
        path = model.validate_path(path)
        await self._agents.get_here(agent_id)
        try:
            return await self._runtimes.get_warden(agent_id).read(path, limit=model.FILE_LIMIT)
        except (warden_errors.WardenFileNotFound, warden_errors.PathRefused):
            raise WorkspaceFileNotFound from None
        except warden_errors.WardenNotAFile:
            raise WorkspaceFileUnreadable from None
        except warden_errors.WardenFileTooLarge:
            raise WorkspaceFileTooLarge from None
        except (ContainerNotRunning, warden_errors.WardenDisconnected):
            raise AgentNotRunning from None

    async def upload_file(self, agent_id: str, filename: str, content: str) -> UploadedFile:
        """Write a base64 file to `uploads/`, replacing one of the same name.

        Raises AgentNotFound, AgentOnOtherHost, AgentNotRunning, InvalidFilename, InvalidFileContent,
        WorkspaceFileTooLarge, and InvalidFilePath if the agent replaced `uploads` with something that is not a folder.
        """
        path = f"{model.UPLOADS}/{model.validate_filename(filename)}"
        data = model.decode_content(content)
        await self._agents.get_here(agent_id)
        try:
            await self._runtimes.get_warden(agent_id).write(path, data)
        except (warden_errors.PathRefused, warden_errors.WardenNotAFile):
            raise InvalidFilePath from None
        except (ContainerNotRunning, warden_errors.WardenDisconnected):
            raise AgentNotRunning from None
        return UploadedFile(path, filename, len(data))
