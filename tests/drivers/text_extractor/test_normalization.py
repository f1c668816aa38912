"""Normal form of texts."""

import sys
import time

from roost.drivers.text_extractor.contract import TEXT_LIMIT
from roost.drivers.text_extractor.normalization import is_normal, normalize_text


def test_every_character_alone_becomes_normal() -> None:
    for code in range(sys.maxunicode + 1):
        assert is_normal(normalize_text(f"a{chr(code)}b")), hex(code)


def test_a_lone_surrogate_is_replaced() -> None:
    assert normalize_text("a\ud800b\udfff") == "a\ufffdb\ufffd"
    assert normalize_text("😀") == "😀"


def test_marks_stay_on_their_character_within_a_limit() -> None:
    assert normalize_text("e\u0301\u0323") == "ẹ\u0301"
    assert normalize_text("x" + "\u0301\u0323" * 100) == "x" + "\u0323" * 15 + "\u0301" * 15


def test_hostile_texts_take_linear_time() -> None:
    for piece in (" ", "\n", "\r", " \n", "\t x", "a\0", "\ufeff", "\u0301\u0323", "a\u0323"):
        began = time.monotonic()
        assert is_normal(normalize_text(piece * (TEXT_LIMIT // len(piece)) + "x"))
        assert time.monotonic() - began < 5
