"""Paths of agents' files on the host, and their owners (decision 0009).

    agents/<id>/{workspace,home}   persist
    run/<id>/                      w.sock, container.json, lock, and the relay sockets in out/
    tools/<digest>/                bwrap and the warden, as copies that every uid can read
    sandbox/                       empty; its owner is the uid of sandboxes

If the server runs as root, each agent has its own host uid, the owner of its workspace. Claims on uids are links in one
folder of the machine (uid -> workspace), so that two servers never use the same; a claim expires with its workspace.
"""

import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from roost.core import ids
from roost.drivers.runtime.contract import RuntimeFailed

_START_LOCK = "lock"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

# Not used by accounts, systemd's dynamic users (61184-65519) or the usual subordinate ids (100000 and up); the second
# range is for servers in a container with 65536 ids.
_RANGES = (range(70_000, 100_000), range(60_600, 61_184))


class HostUsers:
    """Host uids of agents and of sandboxes, each claimed by a folder."""

    def __init__(self, claims: Path | None = None) -> None:
        self._claims = claims or Path("/var/lib/roost/uids")

    def prepare_owner(self, folder: Path) -> int | None:
        """Create the folder, with its content owned by a user of its own; return the uid, None without root.

        Raises as `claim_uid`.
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.geteuid() != 0:
            return None
        uid = self.claim_uid(folder)
        if folder.lstat().st_uid != uid:
            _change_owner(folder, uid)
        return uid

    def claim_uid(self, folder: Path) -> int:
        """Return the uid that owns the folder, or else a free one. Raises OSError and RuntimeFailed."""
        allowed = _mapped_range()
        with self._locked():
            owner = folder.lstat().st_uid
            if owner in allowed and self._try_claim(owner, folder):
                return owner
            for uid in allowed:
                if self._try_claim(uid, folder):
                    return uid
        raise RuntimeFailed("All host users for agents are in use")

    def release_uid(self, folder: Path) -> None:
        """Give up the claim of a folder that is about to be removed, if it has one."""
        with suppress(FileNotFoundError):
            claim = self._claims / str(folder.lstat().st_uid)
            if _read_link(claim) == folder:
                claim.unlink()

    def _try_claim(self, uid: int, folder: Path) -> bool:
        claim = self._claims / str(uid)
        try:
            claim.symlink_to(folder)
        except FileExistsError:
            holder = _read_link(claim)
            if holder == folder:
                return True
            if holder.exists():
                return False
            claim.unlink()
            claim.symlink_to(folder)
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


class AgentPaths:
    """Folders of agents below one data folder."""

    def __init__(self, folder: Path, claims: Path | None = None) -> None:
        self.folder = folder.resolve()
        self.tools = self.folder / "tools"
        self._agents = self.folder / "agents"
        self._runs = self.folder / "run"
        self._users = HostUsers(claims)

    @cached_property
    def mark(self) -> str:
        """Return an identifier of the data folder that stays when the folder is moved, and that no copy has."""
        with suppress(FileExistsError):  # a file has an inode, too; what needs the folder fails by itself
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = self.folder.stat()
        return hashlib.sha256(f"{place.st_dev} {place.st_ino}".encode()).hexdigest()[:24]

    def workspace(self, agent_id: str) -> Path:
        return self._agents / validate_name(agent_id) / "workspace"

    def home(self, agent_id: str) -> Path:
        return self._agents / validate_name(agent_id) / "home"

    def run(self, agent_id: str) -> Path:
        return self._runs / validate_name(agent_id)

    def socket(self, agent_id: str) -> Path:
        return self.run(agent_id) / "w.sock"

    def record(self, agent_id: str) -> Path:
        return self.run(agent_id) / "container.json"

    def relays(self, agent_id: str) -> Path:
        return self.run(agent_id) / "out"

    def relay(self, agent_id: str, name: str) -> Path:
        return self.relays(agent_id) / validate_name(name)

    def list_agents(self) -> list[str]:
        """List the ids of agents with a run folder."""
        return _list_names(self._runs)

    def list_stored(self) -> list[str]:
        """List the ids of agents with a workspace and home."""
        return _list_names(self._agents)

    def prepare(self, agent_id: str) -> int | None:
        """Create missing folders; return the agent's host uid, None if it is ours. Raises OSError and RuntimeFailed."""
        _make_run_folder(self.folder, self.run(agent_id))
        workspace, home = self.workspace(agent_id), self.home(agent_id)
        for folder in (self._agents, workspace.parent, self.relays(agent_id)):
            _make_folder(folder, 0o711)  # agents may enter but not list them
        for folder in (workspace, home):
            if not folder.exists():
                _make_folder(folder, 0o700)
        if os.geteuid() != 0:
            return None
        uid = self._users.claim_uid(workspace)
        for folder in (home, workspace):  # the workspace last: its owner marks completion
            if folder.lstat().st_uid != uid:
                _change_owner(folder, uid)
        return uid

    def remove(self, agent_id: str) -> None:
        """Remove all files of the agent, idempotently. Raises OSError."""
        workspace = self.workspace(agent_id)
        self._users.release_uid(workspace)
        remove_tree(self.run(agent_id))
        remove_tree(workspace.parent)


@contextmanager
def claim_start(paths: AgentPaths, agent_id: str) -> Generator[None]:
    """Tell all processes, until this one ends at the latest, that the agent's container starts and is not left behind.

    Raises OSError.
    """
    run = paths.run(agent_id)
    _make_run_folder(paths.folder, run)
    with (run / _START_LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_start_claimed(paths: AgentPaths, agent_id: str) -> bool:
    """Return whether a start of the agent's container is under way; the id can come from a hostile command line."""
    if not _NAME.fullmatch(agent_id):
        return False
    try:
        with (paths.run(agent_id) / _START_LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared, so that two that ask do not meet
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _make_run_folder(data: Path, run: Path) -> None:
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in (run.parent, run):
        _make_folder(folder, 0o711)  # agents may enter but not list them


def validate_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise RuntimeFailed(f"A name must have up to 64 letters, digits, dots, underscores or hyphens, got {name!a}")
    return name


def _list_names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(folder) if _NAME.fullmatch(entry.name)]
    except FileNotFoundError:
        return []


def _make_folder(folder: Path, mode: int) -> None:
    folder.mkdir(exist_ok=True)
    folder.chmod(mode)


def _read_link(link: Path) -> Path:
    try:
        return link.readlink()
    except OSError:
        return Path()


def _mapped_range() -> range:
    """Return the first range whose ids exist in our user namespace."""
    maps = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    for uids in _RANGES:
        if any(first <= uids.start and uids.stop <= first + count for first, _, count in maps):
            return uids
    raise RuntimeFailed("This container has too few user ids for agents: map 65536 of them, or do not run as root")


def _change_owner(folder: Path, uid: int) -> None:
    """Change the owner of the folder's content, then of the folder; links are changed, not followed."""
    for parent, folders, files in os.walk(folder, topdown=False):
        for name in (*folders, *files):
            os.lchown(os.path.join(parent, name), uid, uid)  # noqa: PTH118 - names of any encoding, many of them
    os.lchown(folder, uid, uid)


def remove_tree(path: Path) -> None:
    """Remove a file or folder of any depth and any modes, idempotently, without following links. Raises OSError.

    An agent could create a tree too deep for recursion. So each folder is first moved up to the top folder, and no path
    has more than two parts. Nothing else may write to the tree meanwhile; the container is gone by then. But another
    thread may remove it too, because a cancelled operation ends without its thread.
    """
    try:
        top = _open(str(path), None)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        path.unlink()
        return
    try:
        prefix = ids.new_host_label()
        moved = 0
        while names := os.listdir(top):  # noqa: PTH208 - a descriptor, not a path
            for name in names:
                moved = _empty(top, name, prefix, moved)
    finally:
        os.close(top)
    with suppress(FileNotFoundError):
        path.rmdir()


def _empty(top: int, name: str, prefix: str, moved: int) -> int:
    """Remove one entry of the top folder; its folders are moved to the top. Return the number of moves so far."""
    try:
        folder = _open(name, top)
    except NotADirectoryError:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=top)
        return moved
    except FileNotFoundError:
        return moved
    try:
        for child in os.listdir(folder):  # noqa: PTH208 - as above
            with suppress(FileNotFoundError):
                try:
                    os.unlink(child, dir_fd=folder)
                except (IsADirectoryError, PermissionError):
                    os.close(_open(child, folder))  # moving a folder requires write permission on it, granted here
                    moved += 1
                    os.rename(child, f"{prefix}-{moved}", src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    with suppress(FileNotFoundError):
        os.rmdir(name, dir_fd=top)
    return moved


def _open(name: str, parent: int | None) -> int:
    """Open a folder without following a link, and give its owner all rights. Raises NotADirectoryError."""
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            raise NotADirectoryError(name)
        path = f"/proc/self/fd/{handle}"
        with suppress(PermissionError):  # owned by another user, so only root can remove it anyway
            Path(path).chmod(stat.S_IRWXU)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(handle)
