"""Known values are found wherever they are in a stream, in any chunks and in the usual encodings."""

import base64
import itertools
import json
import random
import re
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.agents.workspace.snapshots.secret_search import SHORTEST_VALUE, SecretSearch

RANDOM = random.Random(1)
SECRETS = {f"KEY_{length}": RANDOM.randbytes(length).replace(b"\0", b"k") for length in range(8, 60)}
SECRETS["PEM"] = b"-----BEGIN PRIVATE KEY-----\n" + base64.b64encode(RANDOM.randbytes(2000)) + b"\n"
SECRETS["TEXT"] = b'a "password" with \\ and spaces / \xc3\xa9'


def found(search: SecretSearch, *chunks: bytes) -> str | None:
    search.reset()
    return next((name for chunk in chunks if (name := search.feed(chunk))), None)


@given(st.sampled_from(sorted(SECRETS)), st.binary(max_size=100), st.lists(st.integers(0, 200), max_size=9), st.data())
def test_a_value_is_found_anywhere_and_in_any_chunks(
    name: str, before: bytes, cuts: list[int], data: st.DataObject
) -> None:
    """Whichever others are searched too, which decide how the stream is read."""
    others = data.draw(st.lists(st.sampled_from(sorted(SECRETS)), max_size=5))
    short = {f"SHORT_{number}": b"short%03d" % number for number in range(data.draw(st.sampled_from([0, 9, 40, 200])))}
    search = SecretSearch({one: SECRETS[one] for one in {name, *others}} | short)
    stream = before + SECRETS[name] + b"after"
    at = sorted({min(cut, len(stream)) for cut in (0, *cuts, len(stream))})
    chunks = [stream[begin:end] for begin, end in itertools.pairwise(at)]
    assert found(search, *chunks) is not None
    assert found(SecretSearch({name: SECRETS[name]}), *chunks) == name


@pytest.mark.parametrize("length", [8, 9, 11, 14, 15, 22, 23, 31, 39])
def test_all_of_many_values_are_found_at_any_place(length: int) -> None:
    """How the stream is read depends on the length of most values."""
    values = {f"KEY_{number}": RANDOM.randbytes(length) for number in range(200)}
    search = SecretSearch(values)
    for place, (name, value) in enumerate(values.items()):
        assert found(search, bytes(place % 40) + value + b"after it") == name


@given(st.sampled_from(sorted(SECRETS)), st.integers(0, 70), st.integers(1, 9))
def test_a_part_of_a_value_is_not_found(name: str, offset: int, missing: int) -> None:
    value = SECRETS[name][:1024]
    search = SecretSearch({name: value})
    assert found(search, bytes(offset) + value[:-missing] + bytes(100)) is None
    assert found(search, bytes(offset) + value[:-1], bytes(100), value[-1:]) is None


def encodings(value: bytes) -> list[bytes]:
    text = value.decode("latin-1")
    quoted = [urllib.parse.quote(value), urllib.parse.quote(value, safe=""), urllib.parse.quote_plus(value)]
    return [
        *(base64.b64encode(bytes(shift) + value + b"more") for shift in range(5)),
        *(base64.urlsafe_b64encode(b"user:"[:shift] + value) for shift in range(5)),
        *(form.encode() for form in quoted),
        re.sub("%..", lambda found: found[0].lower(), quoted[1]).encode(),
        json.dumps({"value": value.decode()}, ensure_ascii=False).encode() if text.isprintable() else value,
    ]


@pytest.mark.parametrize("name", ["TEXT", "KEY_15", "KEY_16", "KEY_17", "KEY_59"])
def test_encoded_values_are_found(name: str) -> None:
    search = SecretSearch(SECRETS)
    forms = encodings(SECRETS[name])
    assert [found(search, b"x = '", form, b"'") for form in forms] == [name] * len(forms)


def test_a_key_in_json_is_found() -> None:
    text = json.dumps({"private_key": SECRETS["PEM"].decode()}).encode()
    assert found(SecretSearch(SECRETS), text) == "PEM"


def test_short_values_are_not_searched() -> None:
    search = SecretSearch({"PIN": b"1234567", "EMPTY": b"", "WORD": b"12345678"})
    assert (len(b"12345678"), found(search, b"1234567")) == (SHORTEST_VALUE, None)
    assert found(search, b"12345678") == "WORD"
    assert found(SecretSearch({}), b"anything") is None


def test_streams_are_apart() -> None:
    search = SecretSearch(SECRETS)
    value = SECRETS["KEY_30"]
    assert search.feed(value[:20]) is None
    search.reset()
    assert search.feed(value[20:]) is None
    assert search.feed(b"") is None


@pytest.mark.parametrize("word", [b"\0", b" ", b"-----BEGIN PRIVATE KEY-----\n"])
def test_values_that_occur_everywhere_are_not_searched(word: bytes) -> None:
    search = SecretSearch(SECRETS | {"ZEROS": bytes(40), "SPACES": b" " * 40})
    stream = (word * 40)[:39] * 3 + b"x"
    assert found(search, *(stream for _ in range(3))) in {None, "ZEROS", "SPACES"}
    assert found(SecretSearch({"PEM": SECRETS["PEM"]}), word * 1000) is None


def test_no_value_is_shown() -> None:
    search = SecretSearch({"KEY": b"very-secret-value"})
    assert search.feed(b"is very-secret-value here") == "KEY"
    assert "very-secret" not in repr(search) + str(search)
