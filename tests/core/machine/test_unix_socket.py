import asyncio
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from roost.core.machine import unix_socket


async def echo_once(listener: socket.socket, path: Path) -> bytes:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(4))
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, sock=listener):
        reader, writer = await unix_socket.connect_unix(path)
        writer.write(b"ping")
        data = await reader.read()
        writer.close()
        await writer.wait_closed()
    return data


async def test_a_connection_carries_bytes_and_the_socket_is_private(tmp_path: Path) -> None:
    path = tmp_path / "s"
    listener = unix_socket.listen_unix(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert await echo_once(listener, path) == b"ping"


async def test_a_path_longer_than_the_kernel_takes(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 120)
    folder.mkdir()
    assert await echo_once(unix_socket.listen_unix(folder / "s"), folder / "s") == b"ping"


async def test_a_new_listener_takes_the_place_of_the_former(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with unix_socket.listen_unix(path):
        assert await echo_once(unix_socket.listen_unix(path), path) == b"ping"
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"]


async def test_leftover_of_a_crash_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    unix_socket.listen_unix(tmp_path / ".s.new").close()
    assert await echo_once(unix_socket.listen_unix(path), path) == b"ping"


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda path: path.symlink_to("elsewhere")])
def test_only_a_socket_is_replaced(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "s")
    with pytest.raises(FileExistsError):
        unix_socket.listen_unix(tmp_path / "s")
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"]


async def test_nobody_there_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await unix_socket.connect_unix(tmp_path / "none" / "s")
    unix_socket.listen_unix(tmp_path / "dead").close()
    with pytest.raises(ConnectionRefusedError):
        await unix_socket.connect_unix(tmp_path / "dead")


async def test_a_full_backlog_is_waited_for_not_taken_for_a_connection(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with unix_socket.listen_unix(path) as listener:
        listener.listen(0)
        first = await unix_socket.connect_unix(path)
        waiting = asyncio.create_task(unix_socket.connect_unix(path))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(waiting), 0.1)
        listener.accept()[0].close()
        second = await asyncio.wait_for(waiting, 5)
        for _, writer in (first, second):
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
