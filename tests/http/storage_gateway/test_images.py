import asyncio
import io

import pytest
from PIL import Image

from roost.drivers.image.contract import ImageOptions, ImageRenderer, ImageTooLarge, RenderedImage, TooManyImages
from roost.http.storage_gateway.images import DiskCache, ImageResizer
from roost.storage.content.model import ContentNetwork
from tests.http.storage_gateway.gateway_env import GatewayEnv
from tests.http.storage_gateway.test_admission import linked


def picture(form: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (60, 40), (255, 0, 0)).save(out, form)
    return out.getvalue()


def size(data: bytes) -> tuple[int, int]:
    return Image.open(io.BytesIO(data)).size


async def test_an_image_is_resized(env: GatewayEnv) -> None:
    cid = await env.file(picture())
    sent = await env.get(f"/ipfs/{cid}?img-width=15&img-dpr=2")
    assert (sent.status, size(sent.body)) == (200, (30, 20))
    assert sent.headers["content-type"] == "image/png"
    assert sent.headers["etag"].startswith(f'"{cid}.img-')
    assert sent.headers["cache-control"] == "public, max-age=29030400, immutable"
    again = await env.get(f"/ipfs/{cid}?img-width=30", if_none_match=sent.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    head = await env.get(f"/ipfs/{cid}?img-width=30", method="HEAD")
    assert (head.headers, head.body) == (sent.headers, b"")


async def test_the_format_is_the_client_s_choice(env: GatewayEnv) -> None:
    cid = await env.file(picture())
    for accept, mime in (("image/avif,image/webp,*/*", "image/webp"), ("*/*", "image/png")):
        sent = await env.get(f"/ipfs/{cid}?img-format=auto", accept=accept)
        assert sent.headers["content-type"] == mime
        assert "Accept" in sent.headers["vary"]


async def test_private_images_are_resized_by_their_links(env: GatewayEnv) -> None:
    cid = await env.file(picture(), ContentNetwork.PRIVATE)
    sent = await env.get(await linked(env, f"/files/{cid}?img-width=30"))
    assert size(sent.body) == (30, 20)
    assert (await env.get(f"/ipfs/{cid}?img-width=30")).status == 404


@pytest.mark.parametrize(
    "query",
    [
        *("img-width=0", "img-width=x", "img-width=-1", "img-width=8193", "img-width=4000&img-dpr=4", "img-height=1e3"),
        *("img-fit=fill", "img-gravity=up", "img-gravity=2x0", "img-quality=0", "img-quality=101", "img-format=bmp"),
        *("img-anim=yes", "img-sharpen=11", "img-metadata=all", "img-dpr=9"),
    ],
)
async def test_wishes_that_cannot_be_granted(env: GatewayEnv, query: str) -> None:
    sent = await env.get(f"/ipfs/{await env.file(picture())}?{query}")
    assert sent.status == 400
    assert sent.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("img-width=30", (30, 20)),
        ("img-height=10", (15, 10)),
        ("img-width=10&img-height=10&img-dpr=2", (20, 13)),
        ("img-width=600", (60, 40)),
        ("img-width=600&img-fit=contain", (600, 400)),
        ("img-width=20&img-height=20&img-fit=scale-down", (20, 13)),
        ("img-width=20&img-height=20&img-fit=scaleDown", (20, 13)),
        ("img-width=20&img-height=20&img-fit=cover", (20, 20)),
        ("img-width=20&img-height=20&img-fit=crop", (20, 20)),
        ("img-width=20&img-height=20&img-fit=pad", (20, 20)),
        *(
            (f"img-width=20&img-height=20&img-fit=cover&img-gravity={side}", (20, 20))
            for side in ("auto", "left", "top")
        ),
        ("img-width=20&img-height=20&img-fit=cover&img-gravity=0.9x1", (20, 20)),
        *((f"img-quality={quality}&img-format=webp", (60, 40)) for quality in (1, 85, 100)),
        *((f"img-sharpen={sharpen}", (60, 40)) for sharpen in ("0", "2.5", "10")),
        *((f"img-anim={anim}", (60, 40)) for anim in ("true", "false")),
        *((f"img-metadata={metadata}", (60, 40)) for metadata in ("keep", "copyright", "none")),
        ("img-onerror=redirect", (60, 40)),
    ],
)
async def test_each_wish_is_granted(env: GatewayEnv, query: str, expected: tuple[int, int]) -> None:
    sent = await env.get(f"/ipfs/{await env.file(picture())}?{query}")
    assert (sent.status, size(sent.body)) == (200, expected)


async def test_files_that_are_no_images_cannot_be_resized(env: GatewayEnv) -> None:
    text, broken = await env.file(b"text"), await env.file(picture()[:60])
    assert (await env.get(f"/ipfs/{text}?img-width=5")).status == 415
    assert (await env.get(f"/ipfs/{broken}?img-width=5")).status == 400
    huge = await env.file(b"\x89PNG\r\n\x1a\n" + bytes(33 * 1024**2))
    assert (await env.get(f"/ipfs/{huge}?img-width=5")).status == 413
    instead = await env.get(f"/ipfs/{text}?img-width=5&img-onerror=redirect")
    assert (instead.status, instead.body) == (200, b"text")


class CountingRenderer(ImageRenderer):
    """Says what it was asked for, and counts."""

    def __init__(self) -> None:
        self.count = 0

    async def render(self, source: bytes, wanted: ImageOptions) -> RenderedImage:
        self.count += 1
        return RenderedImage("image/png", f"{len(source)} {wanted.width}".encode())

    async def close(self) -> None:
        """Nothing runs."""


async def test_rendered_image_is_found_again(env: GatewayEnv) -> None:
    images = CountingRenderer()
    cache = DiskCache(env.storage.folder / "cache", 10_000)
    resizer = ImageResizer(env.storage.reader, images, cache)
    _, trees = await env.storage.keep(b"one", b"other!")
    one, other = [await env.storage.reader.stat(env.storage.scope, tree.cid) for tree in trees]
    for _ in range(2):
        made = await resizer.resize(env.storage.scope, one, ImageOptions(width=5))
        assert made == RenderedImage("image/png", b"3 5")
    assert (await resizer.resize(env.storage.scope, one, ImageOptions(width=6))).data == b"3 6"
    assert (await resizer.resize(env.storage.scope, other, ImageOptions(width=5))).data == b"6 5"
    assert images.count == 3


class SlowRenderer(CountingRenderer):
    """Goes on when it is let, and knows how many it had at once."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = asyncio.Event()
        self.now = self.most = 0

    async def render(self, source: bytes, wanted: ImageOptions) -> RenderedImage:
        self.now += 1
        self.most = max(self.most, self.now)
        await self.goes_on.wait()
        self.now -= 1
        return await super().render(source, wanted)


async def test_only_so_many_sources_are_held(env: GatewayEnv) -> None:
    images = SlowRenderer()
    resizer = ImageResizer(env.storage.reader, images, DiskCache(env.storage.folder / "cache", 100_000))
    _, (tree,) = await env.storage.keep(b"source")
    stat = await env.storage.reader.stat(env.storage.scope, tree.cid)
    wishes = [ImageOptions(width=number % 50 + 1) for number in range(200)]
    tasks = [asyncio.create_task(resizer.resize(env.storage.scope, stat, wish)) for wish in wishes]
    async with asyncio.timeout(20):
        while images.now < 4 or sum(task.done() for task in tasks) < 200 - 68:  # those are told to come again
            await asyncio.sleep(0.01)
        images.goes_on.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    refused = [result for result in results if isinstance(result, BaseException)]
    assert len(refused) == 200 - 68
    assert all(isinstance(one, TooManyImages) and one.retry_after for one in refused)
    assert images.most == 4
    assert images.count <= 50  # what one made is there for the others who wait for the same


async def test_oversized_results_are_not_served(env: GatewayEnv) -> None:
    class Large(CountingRenderer):
        async def render(self, source: bytes, wanted: ImageOptions) -> RenderedImage:
            return RenderedImage("image/png", bytes(32 * 1024**2 + 1))

    resizer = ImageResizer(env.storage.reader, Large(), DiskCache(env.storage.folder / "cache", 10_000))
    _, (tree,) = await env.storage.keep(b"source")
    with pytest.raises(ImageTooLarge):
        await resizer.resize(
            env.storage.scope,
            await env.storage.reader.stat(env.storage.scope, tree.cid),
            ImageOptions(width=5),
        )


async def test_who_comes_when_too_many_wait_is_told_when_to_come_again(
    env: GatewayEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    cid = await env.file(picture())
    monkeypatch.setattr("roost.http.storage_gateway.images._QUEUE_LIMIT", -4)
    sent = await env.get(f"/ipfs/{cid}?img-width=30")
    assert (sent.status, sent.headers["retry-after"], sent.headers["cache-control"]) == (429, "1", "no-store")
