"""The contract of whoever makes an image out of another. What comes in is hostile: a renderer bounds time and memory,
and a source that kills it kills nothing else.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

from roost.core.problem import InvalidInput, PayloadTooLarge, Problem, ProblemKind, TooManyRequests

SOURCE_LIMIT = 32 * 1024**2
"""Bytes of a source."""
PIXEL_LIMIT = 50_000_000
"""Pixels of a source, all frames together, and of what is made of it."""
SIDE_LIMIT = 8_192


class InvalidImage(InvalidInput):
    """A source that is not a whole image, or a wish that cannot be granted."""

    message = "The image cannot be read"


class ImageTooLarge(PayloadTooLarge):
    message = "The image is too large to be resized"


class UnsupportedImage(Problem):
    """Nothing that is resized here."""

    kind = ProblemKind.INVALID
    message = "Only JPEG, PNG, GIF, WebP and AVIF images can be resized"


class TooManyImages(TooManyRequests):
    message = "Too many images are being resized"


class ImageFit(StrEnum):
    """How an image comes into its box: inside it, without growing or with; all over it; that, without growing; inside,
    with a border.
    """

    SCALE_DOWN = "scale-down"
    CONTAIN = "contain"
    COVER = "cover"
    CROP = "crop"
    PAD = "pad"


class ImageMetadata(StrEnum):
    KEEP = "keep"
    COPYRIGHT = "copyright"
    NONE = "none"


@dataclass(frozen=True)
class ImageOptions:
    """The box in pixels, where one side may be left to the other. gravity: the point that is kept when an image is cut,
    each part from 0 to 1. format: `webp`, or None for the source's. anim: whether animations stay ones.
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
    async def render(self, source: bytes, wanted: ImageOptions) -> RenderedImage:
        """Raises InvalidImage, ImageTooLarge, NotAnImage, TooManyImages."""

    @abstractmethod
    async def close(self) -> None:
        """End what runs. Idempotent; a later `render` begins anew."""
