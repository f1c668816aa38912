"""The program that looks into images, in a process of its own with little memory and time.

It speaks on its pipes. A question is a line of JSON (`size`, `wanted`, `pixels`, `side`) and `size` bytes of source; an
answer is a line of JSON (`mime` and `size`, or `refused`: why) and `size` bytes. It ends with its input, and when the
processor time for one image is over.
"""

import io
import json
import resource
import sys
import time
from typing import Any

from PIL import Image, ImageFilter, ImageOps, ImageSequence

_MEMORY = 1024**3
_SECONDS = 120
_FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "AVIF")
_COPYRIGHT = 0x8298
_MOST_FRAMES = 500
_SHARPENING = 30  # per cent for each step of 10

Picture = Image.Image


class ImageRefused(Exception):  # noqa: N818 - an answer
    """`args[0]`: invalid, large or kind."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    Image.MAX_IMAGE_PIXELS = None  # looked at before anything is decoded, below
    while line := sys.stdin.buffer.readline():
        question = json.loads(line)
        _limit_time()
        head, data = _answer(question, sys.stdin.buffer.read(question["size"]))
        sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + data)
        sys.stdout.buffer.flush()


def _limit_time() -> None:
    """From now on: the images before it used some."""
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    then = int(time.process_time()) + _SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (then if most == resource.RLIM_INFINITY else min(then, most), most))


def _answer(question: dict[str, Any], source: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        mime, data = _made(source, question)
    except ImageRefused as refused:
        return {"refused": refused.args[0]}, b""
    except MemoryError:
        return {"refused": "large"}, b""
    except Exception:  # noqa: BLE001 - decoders raise whatever comes to their mind
        return {"refused": "invalid"}, b""
    return {"mime": mime, "size": len(data)}, data


def _made(source: bytes, question: dict[str, Any]) -> tuple[str, bytes]:
    wanted = question["wanted"]
    try:
        opened = Image.open(io.BytesIO(source), formats=_FORMATS)
    except OSError:
        raise ImageRefused("kind") from None
    kind = opened.format or ""
    count = getattr(opened, "n_frames", 1) if wanted["anim"] and kind in {"GIF", "WEBP", "PNG"} else 1
    width, height = opened.size
    if width * height * count > question["pixels"] or max(width, height) > 65_535 or count > _MOST_FRAMES:
        raise ImageRefused("large")
    info: dict[Any, Any] = dict(opened.info)
    exif = opened.getexif()
    frames = list(_frames(opened, count, wanted, question))
    return _written(frames, "WEBP" if wanted["format"] == "webp" else kind, wanted, info, exif)


def _frames(opened: Picture, count: int, wanted: dict[str, Any], question: dict[str, Any]) -> Any:
    made = 0
    for number, frame in enumerate(ImageSequence.Iterator(opened)):
        if number == count:
            return
        picture = ImageOps.exif_transpose(frame) if count == 1 else frame.copy()
        picture = _fitted(_plain(picture), wanted, question["side"])
        if wanted["sharpen"]:
            picture = picture.filter(ImageFilter.UnsharpMask(1, round(wanted["sharpen"] * _SHARPENING), 0))
        made += picture.width * picture.height
        if made > question["pixels"]:
            raise ImageRefused("large")
        yield picture


def _plain(picture: Picture) -> Picture:
    """In colours that can be mixed."""
    has_alpha = picture.mode in {"RGBA", "LA", "PA"} or "transparency" in picture.info
    return picture.convert("RGBA" if has_alpha else "L" if picture.mode == "L" else "RGB")


def _fitted(picture: Picture, wanted: dict[str, Any], side: int) -> Picture:
    width, height, fit = wanted["width"], wanted["height"], wanted["fit"]
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
        return ImageOps.fit(picture, (width, height), Image.Resampling.LANCZOS, centering=tuple(wanted["gravity"]))
    if fit == "scale-down" and picture.width <= width and picture.height <= height:
        return picture
    inside = ImageOps.contain(picture, (width, height), Image.Resampling.LANCZOS)
    return _padded(inside, width, height) if fit == "pad" else inside


def _padded(inside: Picture, width: int, height: int) -> Picture:
    ground = Image.new(inside.mode, (width, height), (255, 255, 255, 0) if inside.mode == "RGBA" else "white")
    ground.paste(inside, ((width - inside.width) // 2, (height - inside.height) // 2))
    return ground


def _written(
    frames: list[Picture], kind: str, wanted: dict[str, Any], info: dict[Any, Any], exif: Image.Exif
) -> tuple[str, bytes]:
    options: dict[str, Any] = {}
    if kind in {"JPEG", "WEBP", "AVIF"}:
        options["quality"] = wanted["quality"]
    if kind != "GIF":
        options |= {"icc_profile": info.get("icc_profile"), "exif": _kept(exif, wanted["metadata"])}
    if len(frames) > 1:
        options |= {"save_all": True, "append_images": frames[1:], "loop": info.get("loop", 0)}
        options["duration"] = info.get("duration", 100)
    first = frames[0].convert("RGB") if kind == "JPEG" and frames[0].mode == "RGBA" else frames[0]
    out = io.BytesIO()
    first.save(out, kind, **options)
    return Image.MIME[kind], out.getvalue()


def _kept(exif: Image.Exif, metadata: str) -> bytes:
    """What of the notes in an image stays. How it is to be turned never does: it was turned."""
    kept = Image.Exif()
    if metadata == "keep":
        kept.update({tag: value for tag, value in exif.items() if tag != 0x0112})
    elif metadata == "copyright" and _COPYRIGHT in exif:
        kept[_COPYRIGHT] = exif[_COPYRIGHT]
    return kept.tobytes() if len(kept) else b""


main()
