"""The `img-` parameters of an address: what image somebody wants of one. Pure."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from roost.drivers.image.contract import SIDE_LIMIT, ImageFit, ImageMetadata, ImageOptions, InvalidImage

T = TypeVar("T", bound=StrEnum)
_PREFIX = "img-"
_NUMBER = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,4})?", re.ASCII)
_POINT = re.compile(r"(0(?:\.[0-9]{1,4})?|1(?:\.0{1,4})?)x(0(?:\.[0-9]{1,4})?|1(?:\.0{1,4})?)", re.ASCII)
_SIDES = {"auto": (0.5, 0.5), "left": (0.0, 0.5), "right": (1.0, 0.5), "top": (0.5, 0.0), "bottom": (0.5, 1.0)}
_TRUTH = {"true": True, "false": False}


def is_wished(query: Mapping[str, str]) -> bool:
    return any(name.startswith(_PREFIX) for name in query)


def original_instead(query: Mapping[str, str]) -> bool:
    """Whether an image that cannot be made is to be the original."""
    return query.get("img-onerror") == "redirect"


def wanted(query: Mapping[str, str], accept: str) -> ImageOptions:
    """accept: the header of that name, for `img-format=auto`. Raises InvalidImage."""
    dpr = _number(query, "img-dpr", 1, 1, 4)
    width, height = (_side(query, name, dpr) for name in ("img-width", "img-height"))
    form = query.get("img-format")
    if form not in {None, "auto", "webp"}:
        raise InvalidImage("img-format is auto or webp")
    if form == "auto":
        form = "webp" if "image/webp" in accept.lower() else None
    if (anim := _TRUTH.get(query.get("img-anim", "true"))) is None:
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


def _number(query: Mapping[str, str], name: str, default: float, least: float, most: float) -> float:
    text = query.get(name)
    if text is None:
        return default
    if _NUMBER.fullmatch(text) is None or not least <= float(text) <= most:
        raise InvalidImage(f"{name} is a number from {least} to {most}")
    return float(text)


def _one_of(query: Mapping[str, str], name: str, kind: type[T], default: T) -> T:
    text = query.get(name, default)
    try:
        return kind("scale-down" if text == "scaleDown" else text)
    except ValueError:
        raise InvalidImage(f"{name} is one of {', '.join(kind)}") from None


def _gravity(text: str) -> tuple[float, float]:
    if text in _SIDES:
        return _SIDES[text]
    found = _POINT.fullmatch(text)
    if found is None:
        raise InvalidImage(f"img-gravity is one of {', '.join(_SIDES)}, or a point like 0.5x0.2")
    return float(found[1]), float(found[2])
