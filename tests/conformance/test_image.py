"""The contract of image renderers."""

import io
import struct
import zlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from roost.drivers.image.contract import (
    SOURCE_LIMIT,
    ImageFit,
    ImageMetadata,
    ImageOptions,
    ImageRenderer,
    ImageTooLarge,
    InvalidImage,
    UnsupportedImage,
)
from roost.drivers.image.pillow import PillowRenderer
from tests.conformance.sandboxes import MakeSandbox

pytestmark = pytest.mark.container
RED, BLUE = (255, 0, 0), (0, 0, 255)


@pytest.fixture
async def images(tmp_path: Path, make_sandbox: MakeSandbox) -> AsyncIterator[ImageRenderer]:
    renderer = PillowRenderer(make_sandbox(tmp_path))
    yield renderer
    await renderer.close()


def encode(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def two_halves(form: str = "PNG", **options: Any) -> bytes:
    """Return an image of 400 x 200, red on the left and blue on the right."""
    image = Image.new("RGB", (400, 200), RED)
    image.paste(BLUE, (200, 0, 400, 200))
    return encode(image, form, **options)


def decode(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


SIZES: Sequence[tuple[ImageOptions, tuple[int, int]]] = [
    (ImageOptions(width=100), (100, 50)),
    (ImageOptions(height=50), (100, 50)),
    (ImageOptions(width=100, height=100), (100, 50)),
    (ImageOptions(width=800), (400, 200)),
    (ImageOptions(width=800, fit=ImageFit.CONTAIN), (800, 400)),
    (ImageOptions(width=100, height=100, fit=ImageFit.COVER), (100, 100)),
    (ImageOptions(width=800, height=800, fit=ImageFit.COVER), (800, 800)),
    (ImageOptions(width=100, height=800, fit=ImageFit.CROP), (100, 200)),
    (ImageOptions(width=100, height=100, fit=ImageFit.PAD), (100, 100)),
    (ImageOptions(), (400, 200)),
]


async def test_an_image_has_the_requested_size(images: ImageRenderer) -> None:
    for options, size in SIZES:
        rendered = await images.render(two_halves(), options)
        assert (rendered.mime, decode(rendered.data).size) == ("image/png", size), options


async def test_the_point_of_gravity_is_kept(images: ImageRenderer) -> None:
    for gravity, colour in (((0.0, 0.5), RED), ((1.0, 0.5), BLUE)):
        rendered = await images.render(two_halves(), ImageOptions(50, 50, ImageFit.COVER, gravity))
        assert decode(rendered.data).convert("RGB").getpixel((25, 25)) == colour


async def test_formats_stay_unless_another_is_wanted(images: ImageRenderer) -> None:
    for form in ("JPEG", "PNG", "GIF", "WEBP", "AVIF"):
        same = await images.render(two_halves(form), ImageOptions(width=40, sharpen=2.5))
        assert (same.mime, decode(same.data).format) == (f"image/{form.lower()}", form)
        other = await images.render(two_halves(form), ImageOptions(width=40, format="webp"))
        assert (other.mime, decode(other.data).format) == ("image/webp", "WEBP")


async def test_a_lower_quality_is_smaller(images: ImageRenderer) -> None:
    noise = encode(Image.effect_noise((200, 200), 80).convert("RGB"), "JPEG")
    good, poor = [await images.render(noise, ImageOptions(quality=quality)) for quality in (95, 10)]
    assert len(poor.data) < len(good.data) / 2


async def test_transparency_is_kept(images: ImageRenderer) -> None:
    clear = encode(Image.new("RGBA", (10, 10), (0, 0, 0, 0)))
    rendered = decode((await images.render(clear, ImageOptions(width=5))).data)
    assert rendered.convert("RGBA").getpixel((2, 2))[3] == 0  # type: ignore[index] - four channels


async def test_animations_are_kept_unless_disabled(images: ImageRenderer) -> None:
    for form in ("GIF", "WEBP"):
        frames = [Image.new("RGB", (40, 40), colour) for colour in (RED, BLUE, (0, 255, 0))]
        moving = encode(frames[0], form, save_all=True, append_images=frames[1:], duration=50)
        kept = decode((await images.render(moving, ImageOptions(width=20))).data)
        still = decode((await images.render(moving, ImageOptions(width=20, anim=False))).data)
        assert (getattr(kept, "n_frames", 1), getattr(still, "n_frames", 1)) == (3, 1)
        assert kept.size == still.size == (20, 20)


async def test_metadata_of_an_image(images: ImageRenderer) -> None:
    for metadata, kept in (("keep", {"a", "c"}), ("copyright", {"c"}), ("none", set[str]())):
        exif = Image.Exif()
        exif[0x013B], exif[0x8298], exif[0x0112] = "a", "c", 6  # artist, copyright, rotated to the right
        rendered = decode(
            (await images.render(two_halves("JPEG", exif=exif), ImageOptions(metadata=ImageMetadata(metadata)))).data
        )
        assert set(rendered.getexif().values()) == kept
        assert rendered.size == (200, 400)


def bomb(width: int, height: int) -> bytes:
    """Return a small PNG of a large image, which is possible because zeros compress well."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes((width // 8 + 1) * height), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


async def test_a_decompression_bomb_is_refused(images: ImageRenderer) -> None:
    for size in ((20_000, 20_000), (60_000, 900), (70_000, 8)):
        source = bomb(*size)
        assert len(source) < 100_000
        with pytest.raises(ImageTooLarge):
            await images.render(source, ImageOptions(width=10))


async def test_too_large_images_are_refused(images: ImageRenderer) -> None:
    with pytest.raises(ImageTooLarge):
        await images.render(bytes(SOURCE_LIMIT + 1), ImageOptions())
    with pytest.raises(ImageTooLarge):
        await images.render(two_halves(), ImageOptions(width=8_192, height=8_192, fit=ImageFit.PAD))
    with pytest.raises(ImageTooLarge):
        await images.render(encode(Image.new("1", (1, 4_000))), ImageOptions(width=4_000, fit=ImageFit.CONTAIN))


async def test_other_formats_are_unsupported(images: ImageRenderer) -> None:
    for source in (
        b"",
        b"text",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%PDF-1.4",
        b"%!PS-Adobe-3.0 EPSF-3.0\n",
    ):
        with pytest.raises(UnsupportedImage):
            await images.render(source, ImageOptions())


async def test_a_damaged_image_does_not_affect_the_next(images: ImageRenderer) -> None:
    for form in ("JPEG", "PNG", "WEBP", "AVIF"):
        whole = two_halves(form)
        with pytest.raises((InvalidImage, UnsupportedImage)):
            await images.render(whole[: len(whole) // 2], ImageOptions(width=10))
        assert (await images.render(whole, ImageOptions(width=10))).data
