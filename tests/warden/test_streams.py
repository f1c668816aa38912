"""Sockets of the warden where the kernel lacks what it would use."""

import errno
import socket
from typing import Any

import pytest

from roost.warden import streams
from roost.warden.light_imports import Socket
from tests.warden.test_event_loop import run


class OldSocket(Socket):
    """Socket of a kernel without IPv6."""

    def __init__(self, family: int, *arguments: Any, **options: Any) -> None:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "not supported")
        super().__init__(family, *arguments, **options)


def test_a_port_of_all_addresses_needs_no_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "Socket", OldSocket)
    listener = run(streams.bind_port("", 0, pytest.fail))
    with listener, socket.create_connection(("127.0.0.1", listener.getsockname()[1]), 10):
        assert listener.family == socket.AF_INET
