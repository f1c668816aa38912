"""The contract of whoever makes an image out of another. What comes in is hostile: a renderer bounds time and memory,
and a source that kills it kills nothing else.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

from roost.core.problem import Invalid, Kind, Limited, Problem, TooLarge

SOURCE_LIMIT = 32 * 1024**2
"""Bytes of a source."""
PIXEL_LIMIT = 50_000_000
"""Pixels of a source, all frames together, and of what is made of it."""
SIDE_LIMIT = 8_192


class InvalidImage(Invalid):
    """A source that is not a whole image, or a wish that cannot be granted."""

    message = "The image cannot be read"


class ImageTooLarge(TooLarge):
    message = "The image is too large to be resized"


class NotAnImage(Problem):
    """Nothing that is resized here."""

    kind = Kind.INVALID
    message = "Only JPEG, PNG, GIF, WebP and AVIF images can be resized"


class TooManyImages(Limited):
    message = "Too many images are being resized"


class Fit(StrEnum):
    """How an image comes into its box: inside it, without growing or with; all over it; that, without growing; inside,
    with a border.
    """

    SCALE_DOWN = "scale-down"
    CONTAIN = "contain"
    COVER = "cover"
    CROP = "crop"
    PAD = "pad"


class Metadata(StrEnum):
    KEEP = "keep"
    COPYRIGHT = "copyright"
    NONE = "none"


@dataclass(frozen=True)
class Wanted:
    """The box in pixels, where one side may be left to the other. gravity: the point that is kept when an image is cut,
    each part from 0 to 1. format: `webp`, or None for the source's. anim: whether animations stay ones.
    """

    width: int | None = None
    height: int | None = None
    fit: Fit = Fit.SCALE_DOWN
    gravity: tuple[float, float] = (0.5, 0.5)
    quality: int = 85
    format: str | None = None
    anim: bool = True
    sharpen: float = 0.0
    metadata: Metadata = Metadata.COPYRIGHT


@dataclass(frozen=True)
class Rendered:
    mime: str
    data: bytes


class Images(ABC):
    @abstractmethod
    async def render(self, source: bytes, wanted: Wanted) -> Rendered:
        """Raises InvalidImage, ImageTooLarge, NotAnImage, TooManyImages."""

    @abstractmethod
    async def close(self) -> None:
        """End what runs. Idempotent; a later `render` begins anew."""
