"""What the warden's end of TLS reads; `tests/drivers/runtime/test_tls_carrier.py` has both ends of a carrier."""

import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from roost.drivers.runtime.tls_carrier import make_bridge_certificate, make_bridge_context
from roost.warden.light_imports import Socket
from roost.warden.tls import TlsSocket, make_tls_context
from tests.warden.test_event_loop import run

_RECORD_BYTES = 16 * 1024


@contextmanager
def connected(folder: Path) -> Iterator[tuple[TlsSocket, ssl.SSLSocket]]:
    """Yield the warden's end and the client's, which have shaken hands."""
    certificate, path = make_bridge_certificate("a"), folder / "certificate"
    path.write_text(certificate.reveal())
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with ThreadPoolExecutor(1) as hands:
        shaking = hands.submit(make_bridge_context(certificate).wrap_socket, ours, server_hostname="a")
        with TlsSocket(Socket(socket.AF_UNIX, fileno=theirs.detach()), make_tls_context(str(path))) as warden:
            run(warden.shake_hands())
            with shaking.result() as client:
                yield warden, client


def test_one_read_returns_all_records_that_have_arrived(tmp_path: Path) -> None:
    content = b"abcd" * _RECORD_BYTES  # four records
    with connected(tmp_path) as (warden, client):
        client.sendall(content)
        assert warden.recv(len(content)) == content
        with pytest.raises(BlockingIOError):
            warden.recv(1)


def test_a_client_that_closes_tls_ends_what_is_read(tmp_path: Path) -> None:
    with connected(tmp_path) as (warden, client):
        client.sendall(b"last")
        client.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.unwrap()  # sends its end, and waits for that of the warden
        assert warden.recv(100) == b"last"
        assert warden.recv(100) == b""
