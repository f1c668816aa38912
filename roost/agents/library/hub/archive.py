"""Bundles as zip archives, the same bytes for the same files."""

import zipfile

from roost.agents.library.skills.bundle import Bundle

_EPOCH = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_FILE_MODE, _PROGRAM_MODE = 0o100644, 0o100755


class _ZipSink:
    """Collects what `zipfile` writes; without a position, it writes from begin to end."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, data: bytes) -> int:
        self.content += data
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def write_zip(bundle: Bundle) -> bytes:
    """Return a zip archive of the files, `SKILL.md` at its top.

    It is not compressed: anyone may ask for it, and 10 MB would cost half a second of processor time.
    """
    sink = _ZipSink()
    with zipfile.ZipFile(sink, "w") as archive:
        for path, file in sorted(bundle.files.items()):
            entry = zipfile.ZipInfo(path, _EPOCH)
            entry.create_system = _UNIX
            entry.external_attr = (_PROGRAM_MODE if file.is_executable else _FILE_MODE) << 16
            archive.writestr(entry, file.content)
    return bytes(sink.content)
