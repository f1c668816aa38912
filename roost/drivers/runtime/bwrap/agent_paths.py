"""Where the runtime keeps what belongs to an agent, and whose it is on the host.

    agents/<id>/{workspace,home}   persist
    run/<id>/                      w.sock, container.json, out/ with the relay sockets
    tools/<digest>/                bwrap and the warden, as copies that every uid can read

Run as root, each agent has its own host uid, that of its workspace folder. Claims on uids are links in one folder of
the machine (uid -> workspace), so that two servers never give out the same; a claim is void once its workspace is
gone. Refuses ids that are no file names.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from roost.drivers.runtime.bwrap.remove import remove_tree
from roost.drivers.runtime.contract import RuntimeFailed

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

# Neither accounts, nor systemd's dynamic users (61184-65519), nor the usual subordinate ids (100000 and up) live there;
# the second range is for a server that is itself in a container with 65536 ids.
_RANGES = (range(70_000, 100_000), range(60_600, 61_184))


class AgentPaths:
    """Folders of agents under one data folder. `mark` names the folder where a path would tell too much."""

    def __init__(self, folder: Path, claims: Path | None = None) -> None:
        self.folder = folder.resolve()
        self.mark = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:24]
        self.tools = self.folder / "tools"
        self._agents = self.folder / "agents"
        self._runs = self.folder / "run"
        self._claims = claims or Path("/var/lib/roost/uids")

    def workspace(self, agent_id: str) -> Path:
        return self._agents / _checked(agent_id) / "workspace"

    def home(self, agent_id: str) -> Path:
        return self._agents / _checked(agent_id) / "home"

    def run(self, agent_id: str) -> Path:
        return self._runs / _checked(agent_id)

    def socket(self, agent_id: str) -> Path:
        return self.run(agent_id) / "w.sock"

    def record(self, agent_id: str) -> Path:
        return self.run(agent_id) / "container.json"

    def relays(self, agent_id: str) -> Path:
        return self.run(agent_id) / "out"

    def relay(self, agent_id: str, name: str) -> Path:
        return self.relays(agent_id) / _checked(name)

    def known(self) -> list[str]:
        """Every agent that has a run folder."""
        try:
            return [entry.name for entry in os.scandir(self._runs) if _NAME.fullmatch(entry.name)]
        except FileNotFoundError:
            return []

    def prepare(self, agent_id: str) -> int | None:
        """Make what is missing. The agent's host uid, None when it is our own. Raises OSError and RuntimeFailed."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        workspace, home = self.workspace(agent_id), self.home(agent_id)
        for folder in (self._agents, workspace.parent, self._runs, self.run(agent_id), self.relays(agent_id)):
            _make(folder, 0o711)  # agents pass through and see no names
        for folder in (workspace, home):
            if not folder.exists():
                _make(folder, 0o700)
        if os.geteuid() != 0:
            return None
        uid = self._claim(workspace)
        for folder in (home, workspace):  # the workspace last: its owner says that all is done
            if folder.lstat().st_uid != uid:
                _give(folder, uid)
        return uid

    def remove(self, agent_id: str) -> None:
        """All that is kept of the agent. Idempotent. Raises OSError."""
        workspace = self.workspace(agent_id)
        with suppress(FileNotFoundError):
            claim = self._claims / str(workspace.lstat().st_uid)
            if _target(claim) == workspace:
                claim.unlink()
        remove_tree(self.run(agent_id))
        remove_tree(workspace.parent)

    def _claim(self, workspace: Path) -> int:
        allowed = _mapped_range()
        with self._locked():
            present = workspace.lstat().st_uid
            if present in allowed and self._take(present, workspace):
                return present
            for uid in allowed:
                if self._take(uid, workspace):
                    return uid
        raise RuntimeFailed("All host users for agents are taken")

    def _take(self, uid: int, workspace: Path) -> bool:
        claim = self._claims / str(uid)
        try:
            claim.symlink_to(workspace)
        except FileExistsError:
            holder = _target(claim)
            if holder == workspace:
                return True
            if holder.exists():
                return False
            claim.unlink()
            claim.symlink_to(workspace)
        return True

    @contextmanager
    def _locked(self) -> Generator[None]:
        self._claims.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(self._claims, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise RuntimeFailed("That name cannot name a container or a socket")
    return name


def _make(folder: Path, mode: int) -> None:
    folder.mkdir(exist_ok=True)
    folder.chmod(mode)


def _target(link: Path) -> Path:
    try:
        return link.readlink()
    except OSError:
        return Path()


def _mapped_range() -> range:
    """The first range whose ids exist in our user namespace."""
    maps = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    for wanted in _RANGES:
        if any(first <= wanted.start and wanted.stop <= first + count for first, _, count in maps):
            return wanted
    raise RuntimeFailed("This container has no user ids to spare for agents: map 65536 of them, or do not run as root")


def _give(folder: Path, uid: int) -> None:
    """Everything in the folder, then the folder; links themselves, not what they lead to."""
    for parent, folders, files in os.walk(folder, topdown=False):
        for name in (*folders, *files):
            os.lchown(os.path.join(parent, name), uid, uid)  # noqa: PTH118 - names of any encoding, many of them
    os.lchown(folder, uid, uid)
