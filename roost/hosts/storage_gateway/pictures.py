"""Resized images: the wish and the CID are the name of the result, so what was made once is found again."""

import hashlib

from roost.drivers.image.contract import SOURCE_LIMIT, Images, ImageTooLarge, Rendered, Wanted
from roost.hosts.storage_gateway.shelf import Shelf
from roost.storage.content.model import Scope
from roost.storage.content.reader import Reader, Stat

_VERSION = 1
"""Another one for every change of how images are made."""


def name_of(file: Stat, wanted: Wanted) -> str:
    """What tells this image of that file from all others."""
    return f"{file.cid.v1()}.img-{hashlib.sha256(f'{_VERSION} {wanted}'.encode()).hexdigest()[:16]}"


class Pictures:
    def __init__(self, reader: Reader, images: Images, shelf: Shelf) -> None:
        self._reader = reader
        self._images = images
        self._shelf = shelf

    async def make(self, scope: Scope, file: Stat, wanted: Wanted) -> Rendered:
        """Raises InvalidImage, ImageTooLarge, NotAnImage, TooManyImages, ContentDamaged, BlobFailed."""
        name = name_of(file, wanted)
        made = await self._shelf.get(name)
        if made is not None:
            return made
        if (file.size or 0) > SOURCE_LIMIT:
            raise ImageTooLarge
        source = b"".join([piece async for piece in self._reader.content(scope, file)])
        made = await self._images.render(source, wanted)
        await self._shelf.put(name, made)
        return made
