"""Files of a skill as a form sends them: the files of a folder, or one zip archive."""

from roost.agents.library.skills.bundle import FILES_LIMIT, Bundle, read_files, read_zip
from roost.agents.library.skills.errors import InvalidBundle

_ZIP = b"PK\x03\x04"


class BundleUpload:
    """Collects files in memory; the limit of the request's body bounds them."""

    def __init__(self) -> None:
        self._files: list[tuple[str, bytes]] = []
        self._current = bytearray()
        self.size = 0
        """Bytes received."""

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        self._current += data
        self.size += len(data)

    async def end_file(self, filename: str) -> None:
        """End the current file, named like `folder/a.txt`. Raises InvalidBundle."""
        if len(self._files) > FILES_LIMIT:
            raise InvalidBundle(f"More than {FILES_LIMIT} files")
        self._files.append((filename, bytes(self._current)))
        self._current.clear()

    def finish(self) -> Bundle:
        """Return the bundle. Blocking; raises InvalidBundle."""
        if not self._files:
            raise InvalidBundle("A file is required")
        if len(self._files) == 1 and self._files[0][1].startswith(_ZIP):
            return read_zip(self._files[0][1])
        return read_files(self._files)
