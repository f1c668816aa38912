"""A whole server as a process: `python -m tests.storage.server_process FOLDER`.

It prints its port and keys of some tenants, and serves until it is killed.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from roost.core import log
from roost.drivers.runtime.fake import FakeRuntime
from tests.support.server import running


@dataclass(frozen=True)
class StorageServerProcess:
    pid: int
    port: int
    keys: Sequence[str]
    """Keys of different tenants."""

    @property
    def key(self) -> str:
        return self.keys[0]


@contextmanager
def server_process(folder: Path) -> Iterator[StorageServerProcess]:
    argv = [sys.executable, "-m", "tests.storage.server_process", str(folder)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        said = json.loads(process.stdout.readline())
        yield StorageServerProcess(process.pid, **said)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def main(folder: Path) -> None:
    async with running(folder, runtime=FakeRuntime(folder)) as server:
        keys = [server.key(tenant) for tenant in ("acme", "other", "third", "fourth")]
        print(json.dumps({"port": server.port, "keys": keys}), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    log.configure_logging("error")
    asyncio.run(main(Path(sys.argv[1])))
