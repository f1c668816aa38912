"""Names by which an agent's own uid can reach what root keeps under closed folders (an engine under a 0700 home, the
data folder itself). Used by root only; nobody else has such agents.

The calling thread gets mounts of its own and binds what is asked for under a stage that only this thread, and what it
starts, can see; the host's mount table stays as it is, and so do the modes of its folders. All starts of boxes must
therefore come from one thread, which does nothing else.
"""

import hashlib
import os
from pathlib import Path

from roost.drivers.runtime.bwrap import kernel
from roost.drivers.runtime.contract import RuntimeFailed


class BindStage:
    """Belongs to the thread that calls it first."""

    def __init__(self, root: Path = Path("/run/roost-stage")) -> None:
        self._root = root
        self._ready = False

    def reach(self, path: Path) -> Path:
        """`path` itself where anybody may go there, else its name on the stage. What lies in `path` keeps its modes,
        and so does `path` itself. Raises RuntimeFailed.
        """
        path = path.resolve()
        if reachable(path):
            return path
        try:
            return self._bind(path)
        except OSError as error:
            raise RuntimeFailed(
                f"{path} lies in a folder that the users of agents may not enter, and it cannot be mounted elsewhere "
                f"({error.strerror}). Use a folder that others may pass through (chmod o+x)."
            ) from error

    def _bind(self, path: Path) -> Path:
        if not self._ready:
            self._root.mkdir(mode=0o755, parents=True, exist_ok=True)
            kernel.leave_mounts()
            kernel.mount_tmpfs(self._root)
            self._ready = True
        place = self._root / hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        if place.exists():
            if place.samefile(path):
                return place
            kernel.detach(place)  # what was there is gone: an engine that was installed again
        elif path.is_dir():
            place.mkdir(mode=0o755)
        else:
            place.touch(mode=0o644)
        kernel.bind(path, place)
        return place


def reachable(path: Path) -> bool:
    """Whether any user may pass through all folders above `path`."""
    return all(folder.stat().st_mode & 0o001 for folder in path.parents)
