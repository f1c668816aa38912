"""The warden's end of a bridge; `tests/drivers/runtime/test_bridge.py` has the server's, and the suites have both."""

import socket

import pytest

from roost.warden import bridge
from roost.warden.bridge import HEADER, WardenBridge
from roost.warden.event_loop import Future
from roost.warden.light_imports import Socket
from tests.warden.test_event_loop import run


async def hold(_: Socket) -> None:
    """Leave a stream open until it breaks."""
    await Future[None]()


def test_a_carrier_that_is_silent_is_ended_with_its_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """A carrier can stay open although nobody is at its other end."""
    monkeypatch.setattr(bridge, "SILENT_SECONDS", 0.05)
    ours, theirs = socket.socketpair()
    with ours, Socket(socket.AF_UNIX, fileno=theirs.detach()) as carrier:
        ended = WardenBridge(carrier, hold)
        ours.sendall(HEADER.pack(b"p", 0, 0) + HEADER.pack(b"o", 1, 0))
        with pytest.raises(TimeoutError):
            run(ended.run())
        assert ours.recv(HEADER.size) == HEADER.pack(b"p", 0, 0)
        assert not ended._streams
