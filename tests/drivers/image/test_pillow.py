"""The processes that are kept: what happens to one between two images is nothing that an image is blamed for."""

import asyncio
import io
import os
import resource
import signal
from collections.abc import AsyncIterator

import pytest
from PIL import Image

from roost.drivers.image.contract import ImageOptions
from roost.drivers.image.pillow import PillowRenderer

SMALL = ImageOptions(width=2)


@pytest.fixture
async def images() -> AsyncIterator[PillowRenderer]:
    made = PillowRenderer()
    yield made
    await made.close()


@pytest.fixture
def source() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4, 4)).save(out, "PNG")
    return out.getvalue()


async def test_one_that_ended_while_it_was_idle_is_replaced(images: PillowRenderer, source: bytes) -> None:
    await images.render(source, SMALL)
    (idle,) = images._idle
    os.kill(idle.pid, signal.SIGKILL)
    async with asyncio.timeout(20):
        await idle.wait()
    assert (await images.render(source, SMALL)).data


async def test_its_time_is_that_of_one_image(images: PillowRenderer, source: bytes) -> None:
    await images.render(source, SMALL)
    (idle,) = images._idle
    _, most = resource.prlimit(idle.pid, resource.RLIMIT_CPU)
    resource.prlimit(idle.pid, resource.RLIMIT_CPU, (60, most))  # as if half of it were used
    await images.render(source, SMALL)
    assert [one.pid for one in images._idle] == [idle.pid]
    assert resource.prlimit(idle.pid, resource.RLIMIT_CPU)[0] > 60
