"""Resize images, with a cache whose keys are the CID and the options."""

import asyncio
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from roost.core import ids, log
from roost.drivers.image.contract import (
    SIDE_LIMIT,
    SOURCE_LIMIT,
    ImageFit,
    ImageMetadata,
    ImageOptions,
    ImageRenderer,
    ImageTooLarge,
    InvalidImage,
    RenderedImage,
    TooManyImages,
)
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader, ContentStat

_log = log.get_logger("images")
_EVICTION_TARGET = 0.8
"""Fraction of the maximum size in use after an eviction."""


class DiskCache:
    """A folder of at most `max_bytes`. Write errors are logged and fail no request."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._size: int | None = None
        self._lock = asyncio.Lock()

    async def get(self, key: str) -> RenderedImage | None:
        return await asyncio.to_thread(self._read, key)

    async def put(self, key: str, image: RenderedImage) -> None:
        async with self._lock:
            try:
                await asyncio.to_thread(self._write, key, image)
            except OSError as error:
                _log.warning("image_cache.write_failed", reason=str(error))

    def _read(self, key: str) -> RenderedImage | None:
        path = self._path(key)
        try:
            data = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        digest, content = data[:32], data[32:]
        if hashlib.sha256(content).digest() != digest:
            return None
        mime, _, image = content.partition(b"\n")
        return RenderedImage(mime.decode(), image)

    def _write(self, key: str, image: RenderedImage) -> None:
        content = image.mime.encode() + b"\n" + image.data
        content = hashlib.sha256(content).digest() + content
        if len(content) > self._max_bytes // 10:  # it would displace too many others
            return
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = self._folder / f"{ids.random_bytes(8).hex()}.part"
        try:
            part.write_bytes(content)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        self._size = sum(size for _, size, _ in self._list_files()) if self._size is None else self._size + len(content)
        if self._size > self._max_bytes:
            self._evict()

    def _evict(self) -> None:
        files = sorted(self._list_files())
        size = sum(length for _, length, _ in files)
        for _, length, path in files:
            if size <= self._max_bytes * _EVICTION_TARGET:
                break
            path.unlink(missing_ok=True)
            size -= length
        self._size = size

    def _list_files(self) -> Sequence[tuple[float, int, Path]]:
        """Return time of last use, size and path of each file."""
        found: list[tuple[float, int, Path]] = []
        for path in self._folder.rglob("*"):
            with suppress(OSError):
                stat = path.stat()
                if path.is_file():
                    found.append((stat.st_mtime, stat.st_size, path))
        return found

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()
        return self._folder / name[:2] / name


_VERSION = 1
"""Part of the cache key; increase it with every change of the rendering."""
_CONCURRENCY, _QUEUE_LIMIT = 4, 64
"""Sources in memory at once, and requests that may wait for one."""


def image_key(file: ContentStat, options: ImageOptions) -> str:
    return f"{file.cid.v1()}.img-{hashlib.sha256(f'{_VERSION} {options}'.encode()).hexdigest()[:16]}"


class ImageResizer:
    def __init__(self, reader: ContentReader, renderer: ImageRenderer, cache: DiskCache) -> None:
        self._reader = reader
        self._renderer = renderer
        self._cache = cache
        self._slots = asyncio.Semaphore(_CONCURRENCY)
        self._pending = 0

    async def resize(self, scope: ContentScope, file: ContentStat, options: ImageOptions) -> RenderedImage:
        """Return a resized image. Raises TooManyImages, and errors of the renderer and of content."""
        key = image_key(file, options)
        if (image := await self._cache.get(key)) is not None:
            return image
        if (file.size or 0) > SOURCE_LIMIT:
            raise ImageTooLarge
        if self._pending >= _CONCURRENCY + _QUEUE_LIMIT:
            raise TooManyImages(retry_after=1)
        self._pending += 1
        try:
            async with self._slots:
                return await self._cache.get(key) or await self._render(key, scope, file, options)
        finally:
            self._pending -= 1

    async def _render(self, key: str, scope: ContentScope, file: ContentStat, options: ImageOptions) -> RenderedImage:
        source = b"".join([piece async for piece in self._reader.stream_file(scope, file)])
        image = await self._renderer.render(source, options)
        if len(image.data) > SOURCE_LIMIT:
            raise ImageTooLarge
        await self._cache.put(key, image)
        return image


T = TypeVar("T", bound=StrEnum)
_PREFIX = "img-"
_NUMBER = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,4})?", re.ASCII)
_POINT = re.compile(r"(0(?:\.[0-9]{1,4})?|1(?:\.0{1,4})?)x(0(?:\.[0-9]{1,4})?|1(?:\.0{1,4})?)", re.ASCII)
_GRAVITIES = {"auto": (0.5, 0.5), "left": (0.0, 0.5), "right": (1.0, 0.5), "top": (0.5, 0.0), "bottom": (0.5, 1.0)}
_BOOLEANS = {"true": True, "false": False}


def has_image_options(query: Mapping[str, str]) -> bool:
    return any(name.startswith(_PREFIX) for name in query)


def falls_back_to_original(query: Mapping[str, str]) -> bool:
    """Return whether to serve the original if the image cannot be resized."""
    return query.get("img-onerror") == "redirect"


def parse_image_options(query: Mapping[str, str], accept: str) -> ImageOptions:
    """Parse the options; `accept` is the header, for `img-format=auto`. Raises InvalidImage."""
    dpr = _number(query, "img-dpr", 1, 1, 4)
    width, height = (_side(query, name, dpr) for name in ("img-width", "img-height"))
    form = query.get("img-format")
    if form not in {None, "auto", "webp"}:
        raise InvalidImage("img-format is auto or webp")
    if form == "auto":
        form = "webp" if "image/webp" in accept.lower() else None
    if (anim := _BOOLEANS.get(query.get("img-anim", "true"))) is None:
        raise InvalidImage("img-anim is true or false")
    return ImageOptions(
        width,
        height,
        _one_of(query, "img-fit", ImageFit, ImageFit.SCALE_DOWN),
        _gravity(query.get("img-gravity", "auto")),
        round(_number(query, "img-quality", 85, 1, 100)),
        form,
        anim,
        _number(query, "img-sharpen", 0, 0, 10),
        _one_of(query, "img-metadata", ImageMetadata, ImageMetadata.COPYRIGHT),
    )


def _side(query: Mapping[str, str], name: str, dpr: float) -> int | None:
    if name not in query:
        return None
    side = round(_number(query, name, 0, 1, SIDE_LIMIT) * dpr)
    if side > SIDE_LIMIT:
        raise InvalidImage(f"{name} times img-dpr is at most {SIDE_LIMIT}")
    return side


def _number(query: Mapping[str, str], name: str, default: float, low: float, high: float) -> float:
    text = query.get(name)
    if text is None:
        return default
    if _NUMBER.fullmatch(text) is None or not low <= float(text) <= high:
        raise InvalidImage(f"{name} is a number from {low} to {high}")
    return float(text)


def _one_of(query: Mapping[str, str], name: str, kind: type[T], default: T) -> T:
    text = query.get(name, default)
    try:
        return kind("scale-down" if text == "scaleDown" else text)
    except ValueError:
        raise InvalidImage(f"{name} is one of {', '.join(kind)}") from None


def _gravity(text: str) -> tuple[float, float]:
    if text in _GRAVITIES:
        return _GRAVITIES[text]
    point = _POINT.fullmatch(text)
    if point is None:
        raise InvalidImage(f"img-gravity is one of {', '.join(_GRAVITIES)}, or a point like 0.5x0.2")
    return float(point[1]), float(point[2])
