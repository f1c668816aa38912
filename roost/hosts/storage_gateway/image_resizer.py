"""Resized images: the wish and the CID are the name of the result, so what was made once is found again."""

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
from roost.hosts.storage_gateway.disk_cache import DiskCache
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader, ContentStat

_VERSION = 1
"""Another one for every change of how images are made."""
_AT_ONCE, _WAITING = 4, 64
"""Sources that are in memory, and requests that wait for one to be."""


def name_of(file: ContentStat, wanted: ImageOptions) -> str:
    """What tells this image of that file from all others."""
    return f"{file.cid.v1()}.img-{hashlib.sha256(f'{_VERSION} {wanted}'.encode()).hexdigest()[:16]}"


class ImageResizer:
    def __init__(self, reader: ContentReader, images: ImageRenderer, shelf: DiskCache) -> None:
        self._reader = reader
        self._images = images
        self._shelf = shelf
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._asked = 0

    async def make(self, scope: ContentScope, file: ContentStat, wanted: ImageOptions) -> RenderedImage:
        """Raises InvalidImage, ImageTooLarge, NotAnImage, TooManyImages, ContentDamaged, BlobFailed."""
        name = name_of(file, wanted)
        made = await self._shelf.get(name)
        if made is not None:
            return made
        if (file.size or 0) > SOURCE_LIMIT:
            raise ImageTooLarge
        if self._asked >= _AT_ONCE + _WAITING:
            raise TooManyImages(retry_after=1)
        self._asked += 1
        try:
            async with self._places:
                return await self._shelf.get(name) or await self._made(name, scope, file, wanted)
        finally:
            self._asked -= 1

    async def _made(self, name: str, scope: ContentScope, file: ContentStat, wanted: ImageOptions) -> RenderedImage:
        source = b"".join([piece async for piece in self._reader.stream_file(scope, file)])
        made = await self._images.render(source, wanted)
        if len(made.data) > SOURCE_LIMIT:
            raise ImageTooLarge
        await self._shelf.put(name, made)
        return made
