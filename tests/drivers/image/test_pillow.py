"""Workers of the image renderer: isolated from the server, and each image from the next one."""

import asyncio
import io
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from PIL import Image

from roost.drivers.image import pillow
from roost.drivers.image.contract import ImageOptions, ImagesUnavailable, ImageTooLarge, InvalidImage
from roost.drivers.image.pillow import PillowRenderer
from roost.drivers.runtime.bwrap.sandbox import BwrapSandbox
from tests.conformance.runtimes import until

pytestmark = pytest.mark.container
SMALL = ImageOptions(width=2)


@pytest.fixture
async def images(tmp_path: Path) -> AsyncIterator[PillowRenderer]:
    made = PillowRenderer(BwrapSandbox(tmp_path))
    yield made
    await made.close()


@pytest.fixture
def source() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4, 4)).save(out, "PNG")
    return out.getvalue()


@pytest.fixture(scope="module")
def slow_source() -> bytes:
    out = io.BytesIO()
    Image.effect_noise((4000, 4000), 80).convert("RGB").save(out, "JPEG")
    return out.getvalue()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def find_waiting_decoder(pid: int) -> int | None:
    """Return the process that will decode the next image: it has the connection, until it has read a source."""
    for child in children(pid):
        with suppress(OSError):  # it ended meanwhile
            if any(str(each.readlink()).startswith("socket:") for each in Path(f"/proc/{child}/fd").iterdir()):
                return child
    return None


async def signal_decoder(pid: int, number: signal.Signals) -> None:
    """Send a signal to the process that decodes an image, once it has begun to."""
    await until(lambda: children(pid) and cpu_ticks(children(pid)[0]) > 1)
    os.kill(children(pid)[0], number)


async def test_a_worker_that_ended_while_it_was_idle_is_replaced(images: PillowRenderer, source: bytes) -> None:
    await images.render(source, SMALL)
    (idle,) = images._workers.idle
    os.kill(idle.pid, signal.SIGKILL)
    await until(lambda: not idle.is_alive())
    assert (await images.render(source, SMALL)).data


async def test_a_worker_that_cannot_be_started_tells_visitors_no_reason(tmp_path: Path, source: bytes) -> None:
    images = PillowRenderer(BwrapSandbox(tmp_path, bwrap=tmp_path / "missing"))
    with pytest.raises(ImagesUnavailable, match=r"^Images cannot be resized at the moment$"):
        await images.render(source, SMALL)


async def test_a_crash_ends_one_image_and_not_its_worker(
    images: PillowRenderer, source: bytes, slow_source: bytes
) -> None:
    await images.render(source, SMALL)
    (worker,) = images._workers.idle
    crash = asyncio.create_task(signal_decoder(worker.pid, signal.SIGSEGV))
    with pytest.raises(InvalidImage):
        await images.render(slow_source, ImageOptions(width=3000))
    await crash
    assert (await images.render(source, SMALL)).data
    assert [idle.pid for idle in images._workers.idle] == [worker.pid]


async def test_an_image_that_takes_too_long_ends_with_its_worker(
    images: PillowRenderer, source: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await images.render(source, SMALL)
    (worker,) = images._workers.idle
    await until(lambda: find_waiting_decoder(worker.pid))
    decoder = find_waiting_decoder(worker.pid)
    assert decoder is not None
    os.kill(decoder, signal.SIGSTOP)
    monkeypatch.setattr(pillow, "_TIMEOUT_SECONDS", 1.0)
    with pytest.raises(ImageTooLarge):
        await images.render(source, SMALL)
    assert not worker.is_alive()
    assert not Path(f"/proc/{decoder}").exists()
    monkeypatch.undo()
    assert (await images.render(source, SMALL)).data
    assert images._workers.idle[0].pid != worker.pid


_HOSTILE = """
import ctypes
import os

def _render(source, request):
    def attempt(call, *arguments):
        try:
            return str(call(*arguments))
        except OSError as error:
            return os.strerror(error.errno)
    if os.fork() == 0:  # it stays when its parent has answered
        os.closerange(3, 10_000)
        signal.pause()
    facts = {
        "descriptors": sum(attempt(os.fstat, fd) != "Bad file descriptor" for fd in range(3, 10_000)),
        "trace": ctypes.CDLL(None).ptrace(16, 1, 0, 0),
        "names": socket.if_nameindex(),
        "user": os.getresuid(),
        "server": attempt(socket.create_connection, ("127.0.0.1", int(source))),
        "shadow": attempt(open, "/etc/shadow"),
        "data": attempt(os.listdir, request["options"]["format"]),
        "write": attempt(open, "/program/x", "w"),
    }
    return "image/png", json.dumps(facts).encode()
"""


async def test_code_in_an_image_gains_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "worker.py"
    head, call, tail = pillow._PROGRAM.read_text().rpartition("\n\nif __name__")
    program.write_text(head + "\n\n" + _HOSTILE + call + tail)  # as if the decoder had been taken over
    monkeypatch.setattr(pillow, "_PROGRAM", program)
    images = PillowRenderer(BwrapSandbox(tmp_path / "data"))
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = str(server.getsockname()[1]).encode()
        found = [json.loads((await images.render(port, ImageOptions(format=str(tmp_path)))).data) for _ in range(2)]
    (worker,) = images._workers.idle
    await until(lambda: len(children(worker.pid)) == 1)  # the process that the image left behind is gone
    await images.close()
    assert found[1] == found[0]
    assert found[0] == {
        "descriptors": 1,  # the pipe of its answer
        "trace": -1,
        "names": [[1, "lo"]],
        "user": [1000, 1000, 1000],
        "server": "Connection refused",
        "shadow": "No such file or directory",
        "data": "No such file or directory",
        "write": "Read-only file system",
    }


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\n",
        b"no json\n",
        b"[]\n",
        b'{"refused": "unknown"}\n',
        b'{"refused": []}\n',
        b'{"mime": "text/html"}\n<script>',
        b'{"mime": []}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_a_forged_answer_is_no_image(answer: bytes) -> None:
    with pytest.raises(InvalidImage):
        pillow._parse_answer(answer)
