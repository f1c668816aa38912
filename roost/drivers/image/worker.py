"""Program that decodes and encodes images in a sandbox, each in a process of its own (`forked_requests.py`).

A request has `options`, `pixels` and `side`; an answer is a line of JSON (`mime`, or `refused` with a reason) and the
result.
"""

import io
import json
import socket
import sys
from typing import Any

from PIL import Image, ImageFilter, ImageOps, ImageSequence

from roost.drivers.image.contract import RESULT_LIMIT
from roost.drivers.sandbox.forked_requests import RequestLimits, serve_requests

_LIMITS = RequestLimits(memory_bytes=1024**3, cpu_seconds=60, answer_bytes=RESULT_LIMIT)
_FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "AVIF")
_COPYRIGHT = 0x8298
_MAX_FRAMES = 500
_SHARPENING = 30  # percent per unit of `sharpen`

Picture = Image.Image


class ImageRefused(Exception):  # noqa: N818 - an answer, not a failure
    """A rejected source; `args[0]` is `invalid`, `large` or `kind`."""


def answer_request(request: dict[str, Any], source: bytes) -> bytes:
    head, data = _handle_request(request, source)
    return json.dumps(head).encode() + b"\n" + data


def _warm_up() -> None:
    """Import the formats and fill the caches of classes, which would cost each child 3 ms."""
    Image.MAX_IMAGE_PIXELS = None  # checked before decoding, below
    Image.init()
    out = io.BytesIO()
    Image.new("RGB", (1, 1)).save(out, "PNG")
    Image.open(out, formats=_FORMATS).load()


def _handle_request(request: dict[str, Any], source: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        mime, data = _render(source, request)
    except ImageRefused as refused:
        return {"refused": refused.args[0]}, b""
    except MemoryError:
        return {"refused": "large"}, b""
    except Exception:  # noqa: BLE001 - decoders raise many error classes
        return {"refused": "invalid"}, b""
    return {"mime": mime}, data


def _render(source: bytes, request: dict[str, Any]) -> tuple[str, bytes]:
    options = request["options"]
    try:
        opened = Image.open(io.BytesIO(source), formats=_FORMATS)
    except OSError:
        raise ImageRefused("kind") from None
    kind = opened.format or ""
    count = getattr(opened, "n_frames", 1) if options["anim"] and kind in {"GIF", "WEBP", "PNG"} else 1
    width, height = opened.size
    if width * height * count > request["pixels"] or max(width, height) > 65_535 or count > _MAX_FRAMES:
        raise ImageRefused("large")
    info: dict[Any, Any] = dict(opened.info)
    exif = opened.getexif()
    frames = list(_frames(opened, count, options, request))
    return _encode(frames, "WEBP" if options["format"] == "webp" else kind, options, info, exif)


def _frames(opened: Picture, count: int, options: dict[str, Any], request: dict[str, Any]) -> Any:
    pixels = 0
    for number, frame in enumerate(ImageSequence.Iterator(opened)):
        if number == count:
            return
        picture = ImageOps.exif_transpose(frame) if count == 1 else frame.copy()
        picture = _fit(_convert_mode(picture), options, request["side"])
        if options["sharpen"]:
            picture = picture.filter(ImageFilter.UnsharpMask(1, round(options["sharpen"] * _SHARPENING), 0))
        pixels += picture.width * picture.height
        if pixels > request["pixels"]:
            raise ImageRefused("large")
        yield picture


def _convert_mode(picture: Picture) -> Picture:
    """Convert to a mode that filters support."""
    has_alpha = picture.mode in {"RGBA", "LA", "PA"} or "transparency" in picture.info
    return picture.convert("RGBA" if has_alpha else "L" if picture.mode == "L" else "RGB")


def _fit(picture: Picture, options: dict[str, Any], side: int) -> Picture:
    width, height, fit = options["width"], options["height"], options["fit"]
    if width is None and height is None:
        return picture
    ratio = picture.width / picture.height
    width = width or max(1, round(height * ratio))
    height = height or max(1, round(width / ratio))
    if max(width, height) > side:
        raise ImageRefused("large")
    if fit == "crop":
        width, height = min(width, picture.width), min(height, picture.height)
    if fit in {"cover", "crop"}:
        return ImageOps.fit(picture, (width, height), Image.Resampling.LANCZOS, centering=tuple(options["gravity"]))
    if fit == "scale-down" and picture.width <= width and picture.height <= height:
        return picture
    inside = ImageOps.contain(picture, (width, height), Image.Resampling.LANCZOS)
    return _pad(inside, width, height) if fit == "pad" else inside


def _pad(inside: Picture, width: int, height: int) -> Picture:
    canvas = Image.new(inside.mode, (width, height), (255, 255, 255, 0) if inside.mode == "RGBA" else "white")
    canvas.paste(inside, ((width - inside.width) // 2, (height - inside.height) // 2))
    return canvas


def _encode(
    frames: list[Picture], kind: str, options: dict[str, Any], info: dict[Any, Any], exif: Image.Exif
) -> tuple[str, bytes]:
    encoding: dict[str, Any] = {}
    if kind in {"JPEG", "WEBP", "AVIF"}:
        encoding["quality"] = options["quality"]
    if kind != "GIF":
        encoding |= {"icc_profile": info.get("icc_profile"), "exif": _filter_exif(exif, options["metadata"])}
    if len(frames) > 1:
        encoding |= {"save_all": True, "append_images": frames[1:], "loop": info.get("loop", 0)}
        encoding["duration"] = info.get("duration", 100)
    first = frames[0].convert("RGB") if kind == "JPEG" and frames[0].mode == "RGBA" else frames[0]
    out = io.BytesIO()
    first.save(out, kind, **encoding)
    return Image.MIME[kind], out.getvalue()


def _filter_exif(exif: Image.Exif, metadata: str) -> bytes:
    """Return the EXIF tags to keep, never the orientation, which was already applied."""
    kept = Image.Exif()
    if metadata == "keep":
        kept.update({tag: value for tag, value in exif.items() if tag != 0x0112})
    elif metadata == "copyright" and _COPYRIGHT in exif:
        kept[_COPYRIGHT] = exif[_COPYRIGHT]
    return kept.tobytes() if len(kept) else b""


if __name__ == "__main__":
    _warm_up()
    serve_requests(socket.socket(fileno=int(sys.argv[1])), answer_request, _LIMITS)
