"""`roost clone`: clones an agent's repository with the user's Git."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, load_session
from roost.cli.output.output import ExitCode, exit_with_error


def clone_agent(
    agent: AgentName,
    folder: Annotated[str | None, typer.Argument(metavar="FOLDER", help="Default: the agent's name.")] = None,
    data: Data = None,
) -> None:
    """Clone an agent's files and their history with Git; `git pull` and `git push` work in the clone."""
    server = load_session(data)
    found = server.find_agent(agent)
    git = shutil.which("git")
    if git is None:
        exit_with_error("Git is not installed on this machine.")
    scheme = urlsplit(server.url).scheme
    url = f"{scheme}://{server.host_name('agents')}/v0/agents/{found['agentId']}/git"
    target = folder or found["name"].replace("/", "-")
    if target.startswith("-"):
        exit_with_error("Name the FOLDER to clone to.", ExitCode.USAGE)
    from roost import config  # slow to import

    data_folder = None if server.domain is None else config.load_settings(data=data).data.resolve()
    helper = f"credential.{url}.helper={_credential_helper(found['agentId'], data_folder)}"
    os.execv(git, [git, "clone", "-c", helper, "--", url, target])  # noqa: S606 - Git shows its progress itself


def _credential_helper(agent_id: str, folder: Path | None) -> str:
    """Return a helper (gitcredentials(7)) that asks the server for the token, so that no file has it.

    folder: the server's data folder; None if the environment names the server, which it then does later as well.
    """
    command = [sys.executable, "-m", "roost", "agents", "token", agent_id]
    command += [] if folder is None else ["--data", str(folder)]
    return f'!f() {{ test "$1" = get && echo username=roost && echo "password=$({shlex.join(command)})"; }}; f'
