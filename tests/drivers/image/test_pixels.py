"""What a picture shows stays: each mode and depth of the formats, by the pixel, against values computed here."""

import io
import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pytest
from PIL import Image, ImageCms

from roost.drivers.image.contract import ImageFit, ImageMetadata, ImageOptions
from roost.drivers.image.worker import answer_request

Pixel = tuple[int, int, int, int]
SIDE = 16
"""Pixels of each of the four fields of a picture, in both directions."""


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def encode_png(rows: Sequence[Sequence[Sequence[int]]], depth: int, colour: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """Write samples as a PNG (its specification, 11.2 and 7.2), without a library."""
    lines = bytearray()
    for row in rows:
        bits = "".join(f"{sample:0{depth}b}" for pixel in row for sample in pixel)
        bits += "0" * (-len(bits) % 8)
        lines += b"\0" + int(bits, 2).to_bytes(len(bits) // 8, "big")
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), depth, colour, 0, 0, 0)
    parts = [chunk(b"IHDR", head), *(chunk(*one) for one in chunks)]
    return b"".join((b"\x89PNG\r\n\x1a\n", *parts, chunk(b"IDAT", zlib.compress(bytes(lines))), chunk(b"IEND", b"")))


def fields(values: Sequence[Any]) -> list[list[Any]]:
    """Return a picture of four fields: two above two."""
    top, bottom = ([one] * SIDE + [other] * SIDE for one, other in (values[:2], values[2:]))
    return [top] * SIDE + [bottom] * SIDE


def rgba_pixels(picture: Image.Image) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack("4B", picture.convert("RGBA").tobytes()))


def render(source: bytes, **options: Any) -> Image.Image:
    request = {"options": asdict(ImageOptions(**options)), "pixels": 1 << 20, "side": 1000}
    head, _, data = answer_request(request, source).partition(b"\n")
    assert "mime" in json.loads(head), head
    return Image.open(io.BytesIO(data))


def assert_fields(picture: Image.Image, expected: Sequence[Pixel], tolerance: int = 1) -> None:
    """Compare the middle of each field; of a transparent pixel only that it is transparent."""
    assert picture.size[0] == picture.size[1]
    side, shown = picture.size[0] // 2, picture.convert("RGBA")
    for number, wanted in enumerate(expected):
        found: Any = shown.getpixel((number % 2 * side + side // 2, number // 2 * side + side // 2))
        seen = [found[3]] if wanted[3] == 0 else found
        assert all(abs(a - b) <= tolerance for a, b in zip(seen, wanted[-len(seen) :], strict=True)), (number, found)


def grey(depth: int, *samples: int) -> list[Pixel]:
    return [(*[round(one * 255 / (2**depth - 1))] * 3, 255) for one in samples]


def clear(pixels: list[Pixel], number: int) -> list[Pixel]:
    return [(*one[:3], 0) if at == number else one for at, one in enumerate(pixels)]


def samples(depth: int) -> list[int]:
    most = 2**depth - 1
    return [0, most, most // 3, most * 2 // 3] if depth > 1 else [0, 1, 1, 0]


def png_cases() -> dict[str, tuple[bytes, list[Pixel]]]:
    found: dict[str, tuple[bytes, list[Pixel]]] = {}
    for depth in (1, 2, 4, 8, 16):
        values, most = samples(depth), 2**depth - 1
        rows = fields([(one,) for one in values])
        found[f"grey {depth}"] = encode_png(rows, depth, 0), grey(depth, *values)
        for number in (1, 2) if depth > 1 else ():
            key = (b"tRNS", struct.pack(">H", values[number]))
            found[f"grey {depth} without {number}"] = (
                encode_png(rows, depth, 0, key),
                clear(grey(depth, *values), number),
            )
        if depth == 1:
            key = (b"tRNS", struct.pack(">H", 1))
            found["grey 1 without 1"] = encode_png(rows, 1, 0, key), clear(clear(grey(1, *values), 1), 2)
        if depth <= 8:
            colours = [(255, 0, 0), (0, 200, 0), (0, 0, 100), (9, 8, 7)][: most + 1]
            indexes = [0, 1, 2, 3] if depth > 1 else [0, 1, 1, 0]
            palette = (b"PLTE", bytes(sum(colours, ())))
            shown = [(*colours[one], 255) for one in indexes]
            rows = fields([(one,) for one in indexes])
            found[f"palette {depth}"] = encode_png(rows, depth, 3, palette), shown
            alpha = [(*colours[one], (128, 255)[one % 2]) for one in indexes]
            found[f"palette {depth} alpha"] = encode_png(rows, depth, 3, palette, (b"tRNS", b"\x80\xff\x80\xff")), alpha
        if depth >= 8:
            colours = [(most, 0, 0), (0, most // 2, 0), (0, 0, most // 4), (most // 5, most // 6, most // 7)]
            scaled: list[Pixel] = [(*(round(one * 255 / most) for one in each), 255) for each in colours]  # type: ignore[misc] - three and one
            found[f"colour {depth}"] = encode_png(fields(colours), depth, 2), scaled
            key = (b"tRNS", struct.pack(">HHH", *colours[1]))
            found[f"colour {depth} without 1"] = encode_png(fields(colours), depth, 2, key), clear(scaled, 1)
            alphas = [(*one, most * part // 4) for one, part in zip(colours, (4, 2, 1, 0), strict=True)]
            with_alpha = [(*one[:3], round(each[3] * 255 / most)) for one, each in zip(scaled, alphas, strict=True)]
            found[f"colour {depth} alpha"] = encode_png(fields(alphas), depth, 6), with_alpha
            greys = [(one, most * part // 4) for one, part in zip(values, (4, 2, 1, 0), strict=True)]
            shades = [
                (*one[:3], round(each[1] * 255 / most)) for one, each in zip(grey(depth, *values), greys, strict=True)
            ]
            found[f"grey {depth} alpha"] = encode_png(fields(greys), depth, 4), shades
    return found


CASES = png_cases()
SIZES = [{}, {"width": SIDE}, {"width": 80, "fit": ImageFit.CONTAIN}]


@pytest.mark.parametrize("size", SIZES, ids=["same", "smaller", "larger"])
@pytest.mark.parametrize("case", CASES)
def test_each_depth_of_png(case: str, size: dict[str, Any]) -> None:
    source, expected = CASES[case]
    tolerance = 1 if not size else 3  # a few bits of alpha leave few of a colour
    assert_fields(render(source, **size), expected, tolerance)
    opaque = [one for one in expected if one[3] in {0, 255}]
    if len(opaque) == len(expected):
        assert_fields(render(source, format="webp", quality=100, **size), expected, 12)


def test_colours_of_transparent_pixels_do_not_run_into_others() -> None:
    """Half of the picture is red, the other half green and transparent: nothing that is seen is green."""
    rows = [[(255, 0, 0, 255)] * 15 + [(0, 255, 0, 0)] * 17] * 32
    for options in (
        {"width": 9},
        {"width": 9, "sharpen": 3.0},
        {"sharpen": 3.0},
        {"width": 50, "fit": ImageFit.CONTAIN},
    ):
        for pixel in rgba_pixels(render(encode_png(rows, 8, 6), **options)):
            assert pixel[3] < 8 or (pixel[0] > 230 and pixel[1] < 25), (options, pixel)


def save(picture: Image.Image, form: str, **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, form, **options)
    return out.getvalue()


def paint(mode: str, values: Sequence[Any]) -> Image.Image:
    picture = Image.new(mode, (2 * SIDE, 2 * SIDE))
    for number, value in enumerate(values):
        left, top = number % 2 * SIDE, number // 2 * SIDE
        picture.paste(value, (left, top, left + SIDE, top + SIDE))
    return picture


RGB: list[Pixel] = [(255, 0, 0, 255), (0, 255, 0, 255), (0, 0, 255, 255), (128, 128, 128, 255)]
PLAIN = [one[:3] for one in RGB]


@pytest.mark.parametrize("size", SIZES, ids=["same", "smaller", "larger"])
@pytest.mark.parametrize(
    ("mode", "values", "expected"),
    [
        ("RGB", PLAIN, RGB),
        ("L", [0, 85, 170, 255], grey(8, 0, 85, 170, 255)),
        ("CMYK", [(0, 255, 255, 0), (255, 0, 255, 0), (255, 255, 0, 0), (0, 0, 0, 127)], RGB),
    ],
)
def test_each_mode_of_jpeg(mode: str, values: list[Any], expected: list[Pixel], size: dict[str, Any]) -> None:
    source = save(paint(mode, values), "JPEG", quality=100, subsampling=0)
    for form in (None, "webp"):
        assert_fields(render(source, format=form, quality=100, **size), expected, 12)


def test_a_photo_with_a_second_image_is_a_photo() -> None:
    source = save(paint("RGB", PLAIN), "MPO", save_all=True, append_images=[paint("L", [0] * 4)], quality=100)
    assert Image.open(io.BytesIO(source)).format == "MPO"
    found = render(source, width=SIDE, quality=100)
    assert found.format == "JPEG"
    assert_fields(found, RGB, 12)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "AVIF"])
def test_a_picture_is_upright(form: str, orientation: int) -> None:
    """EXIF 2.32, tag 274: which corner the first row and column of the stored picture are."""
    exif = Image.Exif()
    exif[274] = orientation
    order = {1: "0123", 2: "1032", 3: "3210", 4: "2301", 5: "0213", 6: "2031", 7: "3120", 8: "1302"}[orientation]
    found = render(save(paint("RGB", PLAIN), form, exif=exif, quality=100), quality=100, metadata=ImageMetadata.KEEP)
    assert_fields(found, [RGB[int(number)] for number in order], 45 if form == "AVIF" else 12)
    assert 274 not in found.getexif()


def profile_of(space: bytes) -> bytes:
    return bytes(16) + space + bytes(112)


@pytest.mark.parametrize(
    ("form", "mode", "target", "kept"),
    [
        ("JPEG", "RGB", None, True), ("JPEG", "RGB", "webp", True), ("PNG", "RGBA", "webp", True),
        ("JPEG", "L", None, True), ("PNG", "L", None, True), ("JPEG", "L", "webp", False), ("PNG", "LA", None, False),
        ("JPEG", "CMYK", None, False), ("JPEG", "CMYK", "webp", False), ("PNG", "P", None, True),
    ],
)  # fmt: skip
def test_a_profile_is_one_of_the_results_mode(form: str, mode: str, target: str | None, kept: bool) -> None:
    """A profile of other colours than the picture's has no meaning, and decoders refuse it or show wrong ones."""
    space = {"L": b"GRAY", "LA": b"GRAY", "CMYK": b"CMYK"}.get(mode, b"RGB ")
    source = save(Image.new(mode, (16, 16)), form, icc_profile=profile_of(space))
    assert render(source, width=8, format=target).info.get("icc_profile") == (profile_of(space) if kept else None)


def test_colours_of_a_profile_that_cannot_stay_are_converted() -> None:
    """A grey profile of gamma 1: half of the light is a sample of 188 in sRGB (IEC 61966-2-1)."""
    tags = struct.pack(">I", 2)
    curve = b"curv" + bytes(4) + struct.pack(">IH", 1, 256) + b"\0\0"
    white = b"XYZ " + bytes(4) + bytes.fromhex("0000f6d6000100000000d32d")
    tags += struct.pack(">4sII", b"kTRC", 156, 14) + struct.pack(">4sII", b"wtpt", 172, 20)
    body = tags + curve + white
    head = struct.pack(">I", 128 + len(body)) + bytes(4) + bytes.fromhex("02400000") + b"mntrGRAYXYZ "
    head += bytes(12) + b"acsp" + bytes(28) + bytes.fromhex("0000f6d6000100000000d32d")
    profile = head + bytes(128 - len(head)) + body
    parsed = ImageCms.ImageCmsProfile(io.BytesIO(profile)).profile
    assert isinstance(parsed, ImageCms.core.CmsProfile)
    assert parsed.xcolor_space.strip() == "GRAY"
    source = save(Image.new("L", (16, 16), 128), "JPEG", icc_profile=profile, quality=100)
    assert render(source, format="webp", quality=100).getpixel((8, 8)) == pytest.approx((188,) * 3, abs=3)
    kept = render(source, quality=100)
    assert (kept.mode, kept.getpixel((8, 8)), kept.info["icc_profile"]) == ("L", 128, profile)


def moving(form: str, frames: Sequence[Image.Image], **options: Any) -> bytes:
    return save(frames[0], form, save_all=True, append_images=frames[1:], **options)


COLOURS: list[Pixel] = [(250, 10, 20, 255), (30, 240, 40, 255), (50, 60, 230, 255)]
CLEAR: Pixel = (0, 0, 0, 0)
DISPOSALS: dict[str, dict[str, Any]] = {"GIF": {"disposal": 2}, "PNG": {"disposal": 1}, "WEBP": {"lossless": True}}


@pytest.mark.parametrize("size", SIZES, ids=["same", "smaller", "larger"])
@pytest.mark.parametrize(
    ("form", "target"), [("GIF", None), ("GIF", "webp"), ("PNG", None), ("PNG", "webp"), ("WEBP", None)]
)
def test_each_frame_is_what_it_was(form: str, target: str | None, size: dict[str, Any]) -> None:
    """A field that is opaque in one frame is transparent in the next, and the times differ."""
    expected = [
        [COLOURS[0], CLEAR, CLEAR, COLOURS[1]],
        [CLEAR, COLOURS[2], CLEAR, COLOURS[1]],
        [CLEAR, CLEAR, COLOURS[0], CLEAR],
    ]
    frames = [paint("RGBA", one) for one in expected]
    source = moving(form, frames, duration=[50, 200, 100], loop=3, **DISPOSALS[form])
    found = render(source, format=target, quality=100, **size)
    assert getattr(found, "n_frames", 1) == 3
    tolerance = 3 if target is None and form == "PNG" else 14
    for number, wanted in enumerate(expected):
        found.seek(number)
        found.load()
        assert_fields(found, wanted, tolerance)
        assert found.info["duration"] == [50, 200, 100][number]
    assert found.info["loop"] == 3


def test_an_animation_that_plays_once_does_not_begin_again() -> None:
    frames = [Image.new("RGB", (16, 16), one) for one in ("red", "blue")]
    source = moving("GIF", frames, duration=50)
    assert "loop" not in Image.open(io.BytesIO(source)).info
    assert render(source, width=8, format="webp").info["loop"] == 1
    assert "loop" not in render(source, width=8).info


def test_an_animation_of_avif_stays_one() -> None:
    frames = [paint("RGB", [one[:3]] * 4) for one in COLOURS]
    source = moving("AVIF", frames, duration=[100, 200, 300], quality=100)
    for form in (None, "webp"):
        found = render(source, width=8, format=form, quality=100)
        assert getattr(found, "n_frames", 1) == 3
        for number, wanted in enumerate(COLOURS):
            found.seek(number)
            found.load()
            assert_fields(found, [wanted] * 4, 30)
            assert found.info["duration"] == (number + 1) * 100
    assert getattr(render(source, anim=False), "n_frames", 1) == 1


@pytest.mark.parametrize("size", [(4000, 1), (1, 4000), (900, 2)])
@pytest.mark.parametrize("fit", [ImageFit.SCALE_DOWN, ImageFit.CONTAIN, ImageFit.PAD])
def test_a_very_thin_picture_has_a_pixel_of_each_side(size: tuple[int, int], fit: ImageFit) -> None:
    found = render(save(Image.new("RGB", size, "red"), "PNG"), width=10, height=10, fit=fit)
    assert found.convert("RGB").getpixel(((found.width - 1) // 2, (found.height - 1) // 2)) == (255, 0, 0)
    assert max(found.size) == 10


def test_a_gif_keeps_each_of_its_colours() -> None:
    """As many as it can have, close to each other, with and without a transparent one."""
    for count in (256, 255):
        picture = Image.new("P", (16, 16))
        colours = [(number, 255 - number // 2, number * 7 % 256) for number in range(256)]
        picture.putpalette(bytes(sum(colours, ())))
        picture.putdata([min(number, count - 1) for number in range(256)])
        more = {} if count == 256 else {"transparency": 0}
        found = render(save(picture, "GIF", **more))
        for number, pixel in enumerate(rgba_pixels(found)):
            wanted = colours[min(number, count - 1)]
            assert pixel[3] == 0 if more and number == 0 else pixel == (*wanted, 255), (count, number)
