"""The contract of an image renderer. Sources are hostile: it limits time and memory and isolates crashes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

from roost.core.problem import InvalidInput, PayloadTooLarge, ServiceUnavailable, TooManyRequests

SOURCE_LIMIT = 32 * 1024**2
"""Maximum bytes of a source."""
PIXEL_LIMIT = 50_000_000
"""Maximum pixels of a source or a result, all frames together."""
SIDE_LIMIT = 8_192
RESULT_LIMIT = 64 * 1024**2
"""Maximum bytes of a result."""


class InvalidImage(InvalidInput):
    """The source is not a complete image, or the options cannot be applied to it."""

    message = "The image cannot be read"


class ImageTooLarge(PayloadTooLarge):
    message = "The image is too large to be resized"


class UnsupportedImage(InvalidInput):
    """The source has an unsupported format."""

    message = "Only JPEG, PNG, GIF, WebP and AVIF images can be resized"


class TooManyImages(TooManyRequests):
    message = "Too many images are being resized"


class ImagesUnavailable(ServiceUnavailable):
    """No worker can be started; the log says why, because visitors see the message."""

    message = "Images cannot be resized at the moment"


class ImageFit(StrEnum):
    """How an image fits into the requested width and height."""

    SCALE_DOWN = "scale-down"  # inside, never enlarged
    CONTAIN = "contain"  # inside
    COVER = "cover"  # fills the area, cut at the edges
    CROP = "crop"  # like cover, never enlarged
    PAD = "pad"  # inside, with a border


class ImageMetadata(StrEnum):
    KEEP = "keep"
    COPYRIGHT = "copyright"
    NONE = "none"


@dataclass(frozen=True)
class ImageOptions:
    """Options of a result; width and height are in pixels, and one may follow from the other.

    gravity: the point to keep when an image is cut, x and y from 0 to 1. format: `webp`, or None for the source's.
    anim: keep animations.
    """

    width: int | None = None
    height: int | None = None
    fit: ImageFit = ImageFit.SCALE_DOWN
    gravity: tuple[float, float] = (0.5, 0.5)
    quality: int = 85
    format: str | None = None
    anim: bool = True
    sharpen: float = 0.0
    metadata: ImageMetadata = ImageMetadata.COPYRIGHT


@dataclass(frozen=True)
class RenderedImage:
    mime: str
    data: bytes


class ImageRenderer(ABC):
    @abstractmethod
    async def render(self, source: bytes, options: ImageOptions) -> RenderedImage:
        """Render an image. Raises the errors of this module."""

    @abstractmethod
    async def close(self) -> None:
        """Stop all processes. Idempotent; a later `render` starts new ones."""
