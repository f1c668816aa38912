"""Chunks cover a text, overlap little, and hostile texts take little time."""

import time

import pytest

from roost.storage.vectors.indexing import OVERLAP_CHARACTERS, split_text
from roost.storage.vectors.model import TooManyChunks

PROSE = "".join(
    f"Sentence {number} has some words, and ä.{' ' if number % 7 else chr(10) * 2}" for number in range(3000)
)


@pytest.mark.parametrize("text", [PROSE, "word " * 20_000, "x" * 50_000, "line\n" * 9000, "漢字。" * 9000, "short"])
def test_chunks_cover_the_text_in_its_order(text: str) -> None:
    chunks = split_text(text, 10_000)
    end = 0
    for chunk in chunks:
        assert chunk.text == text[chunk.begin : chunk.end]
        assert 0 < len(chunk.text) <= 800
        assert chunk.text == chunk.text.strip()
        assert end - OVERLAP_CHARACTERS <= chunk.begin
        assert not text[end : chunk.begin].strip()
        end = chunk.end
    assert not text[end:].strip()


@pytest.mark.parametrize("text", ["", " ", "\n \t\n" * 500])
def test_blank_texts_have_no_chunks(text: str) -> None:
    assert split_text(text, 10) == []


def test_chunks_are_limited() -> None:
    assert len(split_text("word " * 500, 4)) == 4
    with pytest.raises(TooManyChunks, match="more than 3 chunks"):
        split_text("word " * 500, 3)


@pytest.mark.parametrize("unit", ["a", "\u0301", "a\u0301", "\u200d", "👩\u200d"])
def test_a_text_without_spaces_takes_little_time(unit: str) -> None:
    text = unit * (400_000 // len(unit))
    began = time.monotonic()
    split_text(text, 100_000)
    assert time.monotonic() - began < 3
