"""Program that decodes and encodes images in a sandbox, each in a process of its own (`forked_requests.py`).

A request has `options`, `pixels` and `side`; an answer is a line of JSON (`mime`, or `refused` with a reason) and the
result.
"""

import io
import json
import socket
import sys
from typing import Any

from PIL import Image, ImageCms, ImageFilter, ImageMath, ImageOps, ImageSequence

from roost.drivers.image.contract import RESULT_LIMIT
from roost.drivers.sandbox.forked_requests import RequestLimits, serve_requests

_LIMITS = RequestLimits(memory_bytes=1024**3, cpu_seconds=60, answer_bytes=RESULT_LIMIT)
_FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "AVIF")
_COPYRIGHT = 0x8298
_MAX_FRAMES = 500
_SHARPENING = 30  # percent per unit of `sharpen`
_SAMPLE_STEPS = {"L;2": 85, "L;4": 17}
"""What Pillow multiplies the samples of a grey PNG by, but not its transparent one."""
_PROFILE_SPACES = {"L": b"GRAY", "RGB": b"RGB ", "RGBA": b"RGB "}

Picture = Image.Image


class ImageRefused(Exception):  # noqa: N818 - an answer, not a failure
    """A rejected source; `args[0]` is `invalid`, `large` or `kind`."""


def answer_request(request: dict[str, Any], source: bytes) -> bytes:
    try:
        mime, data = _render(source, request)
        head = {"mime": mime}
    except ImageRefused as refused:
        head, data = {"refused": refused.args[0]}, b""
    except MemoryError:
        head, data = {"refused": "large"}, b""
    except Exception:  # noqa: BLE001 - decoders raise many error classes
        head, data = {"refused": "invalid"}, b""
    return json.dumps(head).encode() + b"\n" + data


def _warm_up() -> None:
    """Import the formats and fill the caches of classes, which would cost each child 3 ms."""
    Image.MAX_IMAGE_PIXELS = None  # checked before decoding, below
    Image.init()
    out = io.BytesIO()
    Image.new("RGB", (1, 1)).save(out, "PNG")
    Image.open(out, formats=_FORMATS).load()


def _render(source: bytes, request: dict[str, Any]) -> tuple[str, bytes]:
    options = request["options"]
    try:
        opened = Image.open(io.BytesIO(source), formats=_FORMATS)
    except OSError:
        raise ImageRefused("kind") from None
    kind = "JPEG" if opened.format == "MPO" else opened.format or ""  # photos with a second image beside the first
    samples = str(opened.tile[0][3]) if opened.tile else ""
    count = getattr(opened, "n_frames", 1) if options["anim"] and kind in {"GIF", "WEBP", "PNG", "AVIF"} else 1
    width, height = opened.size
    if width * height * count > request["pixels"] or max(width, height) > 65_535 or count > _MAX_FRAMES:
        raise ImageRefused("large")
    target = "WEBP" if options["format"] == "webp" else kind
    info: dict[Any, Any] = {"loop": 1, **opened.info} if kind == "GIF" != target else dict(opened.info)
    exif = opened.getexif()
    has_profile = _has_usable_profile(opened, target)
    frames = list(_frames(opened, count, samples, has_profile, request))
    return _encode(frames, target, options, info if has_profile else {**info, "icc_profile": None}, exif)


def _frames(opened: Picture, count: int, samples: str, has_profile: bool, request: dict[str, Any]) -> Any:
    options, pixels = request["options"], 0
    for number, frame in enumerate(ImageSequence.Iterator(opened)):
        if number == count:
            return
        upright = ImageOps.exif_transpose(frame)
        duration = frame.info.get("duration", 100)  # WebP has it with the decoded frame
        picture = _convert_mode(_to_standard_colours(upright, has_profile), samples)
        picture = _fit(picture, options, request["side"])
        if options["sharpen"]:
            picture = _sharpen(picture, options["sharpen"])
        picture.info["duration"] = duration
        pixels += picture.width * picture.height
        if pixels > request["pixels"]:
            raise ImageRefused("large")
        yield picture


def _has_usable_profile(opened: Picture, target: str) -> bool:
    """Return whether a result can have the colour profile of the source: it must be one of the result's mode."""
    profile = opened.info.get("icc_profile") or b""
    grey = opened.mode in {"L", "I;16"} and "transparency" not in opened.info and target in {"JPEG", "PNG"}
    return profile[16:20] == _PROFILE_SPACES["L" if grey else "RGB"]


def _to_standard_colours(picture: Picture, has_profile: bool) -> Picture:
    """Convert the colours of a profile that the result cannot have to sRGB, as far as the profile can be read."""
    profile = picture.info.get("icc_profile")
    if has_profile or not profile or profile[16:20] != {"CMYK": b"CMYK", "L": b"GRAY"}.get(picture.mode):
        return picture
    try:
        cms: Any = ImageCms  # its types are incomplete
        found = cms.profileToProfile(
            picture, cms.ImageCmsProfile(io.BytesIO(profile)), cms.createProfile("sRGB"), outputMode="RGB"
        )
    except (ImageCms.PyCMSError, OSError):
        return picture
    return found or picture


def _convert_mode(picture: Picture, samples: str) -> Picture:
    """Convert to a mode of 8 bits that filters support. samples: how a PNG has its own."""
    clear = picture.info.pop("transparency", None)
    if picture.mode == "I;16":
        wide, picture = picture, picture.point(lambda value: value * (1 / 257) + 0.5).convert("L")
        if clear is None:
            return picture
        opaque = ImageMath.lambda_eval(lambda images: (images["wide"] != clear) * 255, wide=wide.convert("I"))
        picture = picture.convert("RGBA")
        picture.putalpha(opaque.convert("L"))
        return picture
    if picture.mode == "1":
        picture = picture.convert("L")
    if clear is not None:
        if isinstance(clear, int):
            clear *= _SAMPLE_STEPS.get(samples, 1)
        elif samples == "RGB;16B":
            clear = tuple(value >> 8 for value in clear)
        picture.info["transparency"] = clear
    has_alpha = picture.mode in {"RGBA", "LA", "PA"} or clear is not None
    return picture.convert("RGBA" if has_alpha else "L" if picture.mode == "L" else "RGB")


def _sharpen(picture: Picture, amount: float) -> Picture:
    """Sharpen; the colours of transparent pixels do not count."""
    mask = ImageFilter.UnsharpMask(1, round(amount * _SHARPENING), 0)
    if picture.mode != "RGBA":
        return picture.filter(mask)
    sharp = picture.convert("RGBa").filter(mask).convert("RGBA")
    sharp.putalpha(picture.getchannel("A"))
    return sharp


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
    scale = min(width / picture.width, height / picture.height)
    inside = picture.resize([max(1, round(side * scale)) for side in picture.size], Image.Resampling.LANCZOS)
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
    if kind == "GIF":
        frames = [_to_palette(frame) for frame in frames]
    if len(frames) > 1:
        encoding |= {"save_all": True, "append_images": frames[1:]}
        if kind != "GIF" or "loop" in info:  # a GIF without it plays once
            encoding["loop"] = info.get("loop", 0)
        encoding["duration"] = [frame.info["duration"] for frame in frames]
        if kind in {"GIF", "PNG"}:  # each frame is a whole one, whatever the source's were
            encoding |= {"disposal": 2} if kind == "GIF" else {"disposal": 0, "blend": 0}
    out = io.BytesIO()
    frames[0].save(out, kind, **encoding)
    return Image.MIME[kind], out.getvalue()


def _to_palette(picture: Picture) -> Picture:
    """Convert to at most 256 colours, of which one is transparent if there is alpha; fewer colours stay as they are."""
    if picture.mode != "RGBA":
        return picture if picture.mode == "L" else picture.quantize(256, Image.Quantize.MEDIANCUT)
    found = picture.convert("RGB").quantize(255, Image.Quantize.MEDIANCUT)
    clear = picture.getchannel("A").point([255] * 128 + [0] * 128)
    found.paste(255, mask=clear)
    found.info |= {"transparency": 255, "duration": picture.info.get("duration")}
    return found


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
