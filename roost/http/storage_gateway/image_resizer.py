"""Resize images, with a cache whose keys are the CID and the options."""

import asyncio
import hashlib

from roost.drivers.image.contract import (
    SOURCE_LIMIT,
    ImageOptions,
    ImageRenderer,
    ImageTooLarge,
    RenderedImage,
    TooManyImages,
)
from roost.http.storage_gateway.disk_cache import DiskCache
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader, ContentStat

_VERSION = 1
"""Part of the cache key; increase it with every change of the rendering."""
_CONCURRENCY, _QUEUE_LIMIT = 4, 64
"""Sources in memory at once, and requests that may wait for one."""


def image_key(file: ContentStat, options: ImageOptions) -> str:
    """Return the cache key of a resized image."""
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
