"""Files that their owner alone can read, replaced as a whole: a crash leaves the old content or the new one."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from roost.core import ids

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def write_private_file(path: Path, text: str, *, replace: bool = True) -> None:
    """Write a file of mode 0600, atomically and durably. Raises OSError.

    replace: whether to replace a file that exists; otherwise it stays as it is.
    """
    draft = path.with_name(f".{path.name}.{ids.new_id()}")
    try:
        with os.fdopen(os.open(draft, _FLAGS, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            draft.replace(path)
        else:
            _link_unless_exists(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    with _open_folder(path.parent) as folder:
        os.fsync(folder)


@contextmanager
def lock_folder(path: Path, *, wait: bool = True) -> Generator[None]:
    """Hold the lock of a folder, which processes take that change files there.

    Raises BlockingIOError if another process holds it and `wait` is false.
    """
    with _open_folder(path) as folder:
        fcntl.flock(folder, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def _link_unless_exists(draft: Path, path: Path) -> None:
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        return


@contextmanager
def _open_folder(path: Path) -> Generator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
