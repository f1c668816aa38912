"""Carrier of a bridge: connects standard input and output with the warden's bridge.

A runtime runs `python3 -S -E -I <this folder>/bridge_carrier.py <name>` in the container, as the user whom the warden
accepts there.
"""

from __future__ import annotations

import posix  # `os` takes a millisecond to import
import select
import sys
import time
from _socket import AF_UNIX, SHUT_WR, socket
from _thread import start_new_thread
from errno import EINVAL

CHUNK_BYTES = 256 * 1024
CONNECT_SECONDS, RETRY_SECONDS = 4.0, 0.01


def main(name: str) -> None:
    warden = connect_warden(f"\0{name}")
    start_new_thread(send_input, (warden,))
    readable = select.poll()
    readable.register(warden.fileno(), select.POLLIN)
    # A splice that waits for a socket would keep the reader of the pipe from what is in it.
    while readable.poll() and move_bytes(warden.fileno(), 1):
        pass


def connect_warden(address: str) -> socket:
    """Connect to a warden that may be starting. Raises ConnectionRefusedError."""
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        warden = socket(AF_UNIX)
        try:
            warden.connect(address)
        except ConnectionRefusedError:
            warden.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return warden


def send_input(warden: socket) -> None:
    while move_bytes(0, warden.fileno()):
        pass
    warden.shutdown(SHUT_WR)  # the server is gone, and so the warden ends the bridge


def move_bytes(source: int, target: int) -> int:
    """Move a chunk, within the kernel if one end is a pipe, and return its size, 0 at the end."""
    try:
        return posix.splice(source, target, CHUNK_BYTES)
    except OSError as error:
        if error.errno != EINVAL:
            raise
    data = rest = memoryview(posix.read(source, CHUNK_BYTES))
    while rest:
        rest = rest[posix.write(target, rest) :]
    return len(data)


if __name__ == "__main__":
    main(sys.argv[1])
