"""Parse the `img-` query parameters into image options. Pure."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from roost.drivers.image.contract import SIDE_LIMIT, ImageFit, ImageMetadata, ImageOptions, InvalidImage

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
