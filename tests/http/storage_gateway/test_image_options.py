"""The image parameters of an address: every one with its bounds, and what each is without being said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.drivers.image.contract import SIDE_LIMIT, ImageFit, ImageMetadata, ImageOptions, InvalidImage
from roost.http.storage_gateway import images

NAMES = ("width", "height", "dpr", "fit", "gravity", "quality", "format", "anim", "sharpen", "metadata", "onerror")


def wanted(accept: str = "*/*", **said: str) -> ImageOptions:
    return images.parse_image_options({f"img-{name}": text for name, text in said.items()}, accept)


def test_without_options_the_original_is_encoded_again() -> None:
    assert wanted() == ImageOptions()


@pytest.mark.parametrize(
    ("said", "width", "height"),
    [
        ({"width": "1"}, 1, None),
        ({"height": "8192"}, None, SIDE_LIMIT),
        ({"width": "10", "height": "20"}, 10, 20),
        ({"width": "10", "dpr": "2"}, 20, None),
        ({"width": "10.4"}, 10, None),
        ({"width": "10", "height": "3", "dpr": "1.5"}, 15, 4),
        ({"dpr": "3"}, None, None),
        ({"width": "2048", "dpr": "4"}, SIDE_LIMIT, None),
    ],
)
def test_sides_of_an_image_are_parsed(said: dict[str, str], width: int | None, height: int | None) -> None:
    found = wanted(**said)
    assert (found.width, found.height) == (width, height)


@pytest.mark.parametrize("fit", ImageFit)
def test_every_fit_is_parsed(fit: ImageFit) -> None:
    assert wanted(fit=fit.value).fit is fit


def test_a_fit_in_the_words_of_another_client() -> None:
    assert wanted(fit="scaleDown").fit is ImageFit.SCALE_DOWN


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("auto", (0.5, 0.5)),
        ("left", (0.0, 0.5)),
        ("right", (1.0, 0.5)),
        ("top", (0.5, 0.0)),
        ("bottom", (0.5, 1.0)),
        ("0x0", (0.0, 0.0)),
        ("1x1", (1.0, 1.0)),
        ("0.25x1.0", (0.25, 1.0)),
        ("0.0001x0.9999", (0.0001, 0.9999)),
    ],
)
def test_gravity_of_an_image_is_parsed(text: str, point: tuple[float, float]) -> None:
    assert wanted(gravity=text).gravity == point


@pytest.mark.parametrize(
    ("form", "accept", "made"),
    [
        (None, "image/webp", None),
        ("auto", "image/avif,image/webp,*/*", "webp"),
        ("auto", "IMAGE/WEBP", "webp"),
        ("auto", "*/*", None),
        ("webp", "*/*", "webp"),
    ],
)
def test_formats_follow_the_accept_header(form: str | None, accept: str, made: str | None) -> None:
    assert wanted(accept, **({} if form is None else {"format": form})).format == made


def test_other_options_are_parsed() -> None:
    found = wanted(quality="40.6", anim="false", sharpen="2.5", metadata="none")
    assert (found.quality, found.anim, found.sharpen, found.metadata) == (41, False, 2.5, ImageMetadata.NONE)


@pytest.mark.parametrize(
    "said",
    [
        *(
            {"width": text}
            for text in ("", "0", "-1", "8193", "1e3", "0x10", "\u0661", " 1", "1 ", "inf", "nan", "99999")
        ),
        *({"height": text} for text in ("0", "0.9", "8192.1", "1.", ".5", "1.00001", "1,5")),
        *({"dpr": text} for text in ("0", "0.5", "4.1", "x")),
        *({"width": "4000", "dpr": "2.1"}, {"height": "8192", "dpr": "1.1"}),
        *({"fit": text} for text in ("", "fill", "Cover", "scale_down")),
        *({"gravity": text} for text in ("", "center", "0.5", "0.5x", "x0.5", "1.1x0", "2x0", "-0.1x0", "0.5x0.5x0.5")),
        *({"quality": text} for text in ("0", "0.4", "101", "high")),
        *({"format": text} for text in ("", "png", "WEBP", "avif")),
        *({"anim": text} for text in ("", "1", "True", "no")),
        *({"sharpen": text} for text in ("-1", "10.1", "x")),
        *({"metadata": text} for text in ("", "all", "Keep")),
    ],
)
def test_malformed_options_are_refused(said: dict[str, str]) -> None:
    with pytest.raises(InvalidImage):
        wanted(**said)


@given(st.dictionaries(st.sampled_from(NAMES), st.text(max_size=6) | st.sampled_from(["1", "0.5", "auto"]), max_size=5))
def test_any_wish_is_within_its_bounds_or_refused(said: dict[str, str]) -> None:
    try:
        found = wanted(**said)
    except InvalidImage:
        return
    for side in (found.width, found.height):
        assert side is None or 1 <= side <= SIDE_LIMIT
    assert all(0 <= part <= 1 for part in found.gravity)
    assert 1 <= found.quality <= 100
    assert 0 <= found.sharpen <= 10
    assert found.format in {None, "webp"}


def test_whether_something_is_wished_at_all() -> None:
    assert images.has_image_options({"img-width": "5"})
    assert images.has_image_options({"a": "1", "img-unknown": ""})
    assert not images.has_image_options({"width": "5", "ximg-width": "5", "img": "5"})


def test_fallback_to_the_original_is_an_option() -> None:
    assert images.falls_back_to_original({"img-onerror": "redirect"})
    assert not images.falls_back_to_original({"img-onerror": "true"})
    assert not images.falls_back_to_original({})
