"""Bind mounts that give an agent's uid access to folders below closed ones, such as an engine under a 0700 home.

Used by root only, because only root has agents of other uids. The calling thread enters its own mount namespace and
binds the folders below `/run/roost-stage`, which only this thread and its children see; the host's mounts and modes do
not change. All containers must therefore be started from one thread, which does nothing else.
"""

import hashlib
import os
from pathlib import Path

from roost.drivers.runtime.bwrap import kernel
from roost.drivers.runtime.contract import RuntimeFailed


class BindStage:
    """Bind mounts of the thread that calls it first."""

    def __init__(self, root: Path = Path("/run/roost-stage")) -> None:
        self._root = root
        self._ready = False

    def accessible_path(self, path: Path) -> Path:
        """Return `path` if every user can reach it, or else a bind mount of it. Raises RuntimeFailed."""
        path = path.resolve()
        if is_reachable(path):
            return path
        try:
            return self._bind(path)
        except OSError as error:
            raise RuntimeFailed(
                f"{path} is in a folder that users of agents may not enter, and it cannot be mounted elsewhere "
                f"({error.strerror}). Use a folder that others may pass through (chmod o+x)."
            ) from error

    def _bind(self, path: Path) -> Path:
        if not self._ready:
            self._root.mkdir(mode=0o755, parents=True, exist_ok=True)
            kernel.unshare_mounts()
            kernel.mount_tmpfs(self._root)
            self._ready = True
        target = self._root / hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        if target.exists():
            if target.samefile(path):
                return target
            kernel.detach_mount(target)  # the folder was replaced: an engine that was installed again
        elif path.is_dir():
            target.mkdir(mode=0o755)
        else:
            target.touch(mode=0o644)
        kernel.bind_mount(path, target)
        return target


def is_reachable(path: Path) -> bool:
    """Return whether every user may pass through all folders above `path`."""
    return all(folder.stat().st_mode & 0o001 for folder in path.parents)
