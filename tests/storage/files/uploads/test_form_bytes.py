"""Parsing of forms: any bytes in pieces of any size become files and fields, or are refused."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.problem import Problem
from roost.storage.files.uploads.model import FILES_LIMIT
from roost.web.multipart import InvalidForm, TooManyFormFiles, receive_form

TYPE = "multipart/form-data; boundary=edge"
NAMES = st.sampled_from(["name", "network", "keyvalues", "a", "\u00fc"])
NOISE = st.sampled_from(
    [b"", b"\r\n", b"--edge", b"\r\n--edge\r\n", b"--edge--", b"\r\n\r\n", b"\0", b"\xff", b"x" * 40]
)


@dataclass
class FakeUpload:
    """Upload that keeps its files in memory."""

    files: dict[str, bytes] = field(default_factory=dict)
    size: int = 0
    _data: bytes = b""

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        self._data += data
        self.size += len(data)

    async def end_file(self, filename: str) -> None:
        self.files[filename], self._data = self._data, b""


def part(name: str, value: bytes, filename: str | None = None) -> bytes:
    head = f'--edge\r\nContent-Disposition: form-data; name="{name}"' + (f'; filename="{filename}"' if filename else "")
    return head.encode() + b"\r\n\r\n" + value + b"\r\n"


def received(body: bytes, step: int = 1 << 16, kind: str = TYPE) -> tuple[dict[str, str], dict[str, bytes]]:
    async def stream() -> AsyncIterator[bytes]:
        for at in range(0, len(body), step):
            yield body[at : at + step]

    taken = FakeUpload()
    fields = asyncio.run(receive_form(stream(), kind, taken, FILES_LIMIT))
    return dict(fields), taken.files


@given(
    st.dictionaries(NAMES, st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
    st.binary(max_size=200),
    st.integers(1, 60),
)
def test_whatever_a_form_carries(fields: dict[str, str], content: bytes, step: int) -> None:
    if b"--edge" in content or any("--edge" in text for text in fields.values()):
        return
    body = part("file", content, "a.bin") + b"".join(part(name, text.encode()) for name, text in fields.items())
    assert received(body + b"--edge--\r\n", step) == (fields, {"a.bin": content})


@given(st.lists(NOISE | st.binary(max_size=20), max_size=12), st.integers(1, 50))
def test_noise_is_refused_or_read(noise: list[bytes], step: int) -> None:
    body = b"".join([part("file", b"x", "a"), *noise, b"--edge--\r\n"])
    try:
        received(body, step)
    except InvalidForm:
        return


@given(st.integers(0, 150), st.binary(min_size=1, max_size=8), st.integers(1, 50))
def test_a_form_with_other_bytes_in_it(at: int, noise: bytes, step: int) -> None:
    body = part("name", b"n") + part("file", b"content", "a.txt") + b"--edge--\r\n"
    try:
        received(body[:at] + noise + body[at + len(noise) :], step)
    except Problem:
        return


def test_how_it_is_cut_makes_no_difference() -> None:
    chance = random.Random(1)
    content = chance.randbytes(500) + b"\r\n--edg\r\n-\r\n--\r\n" + b"\r" * 30 + b"\n" * 30
    body = part("file", content, "a") + part("name", b"n") + b"--edge--\r\n"
    for step in range(1, 90):
        assert received(body, step) == ({"name": "n"}, {"a": content})


@pytest.mark.parametrize("step", [1 << 20, (1 << 20) + (1 << 16), 3 << 20, 1 << 24])
def test_how_much_comes_at_a_time_makes_no_difference(step: int) -> None:
    content = random.Random(2).randbytes(8_000_000)
    assert received(part("file", content, "a") + b"--edge--\r\n", step)[1] == {"a": content}


@pytest.mark.parametrize(
    "kind",
    [
        *(
            "",
            "multipart/form-data",
            "multipart/form-data;",
            "multipart/form-data; boundary=",
            "multipart/mixed; boundary=edge",
        ),
        *(
            "text/plain; boundary=edge",
            "multipart/form-data; boundary=" + "e" * 201,
            "application/x-www-form-urlencoded",
        ),
    ],
)
def test_other_content_types_are_refused(kind: str) -> None:
    with pytest.raises(InvalidForm):
        received(part("file", b"x", "a") + b"--edge--\r\n", kind=kind)


@pytest.mark.parametrize(
    "kind", ['multipart/form-data; boundary="edge"', "Multipart/Form-Data; charset=utf-8; boundary=edge"]
)
def test_ways_to_say_that_it_is_one(kind: str) -> None:
    assert received(part("file", b"x", "a") + b"--edge--\r\n", kind=kind)[1] == {"a": b"x"}


@pytest.mark.parametrize("name", ["file", "file[]", "files"])
def test_every_name_for_files(name: str) -> None:
    assert received(part(name, b"x", "a") + b"--edge--\r\n")[1] == {"a": b"x"}
    assert received(part(name, b"x") + b"--edge--\r\n")[1] == {"file": b"x"}


def test_so_many_fields_and_files() -> None:
    fields = b"".join(part(f"f{number}", b"") for number in range(32))
    assert len(received(fields + b"--edge--\r\n")[0]) == 32
    with pytest.raises(InvalidForm):
        received(fields + part("one-more", b"") + b"--edge--\r\n")
    many = b"".join(part("file", b"", f"a{number}") for number in range(30_100))
    with pytest.raises(TooManyFormFiles):
        received(many + b"--edge--\r\n", 1 << 20)


def test_a_field_of_the_longest() -> None:
    assert len(received(part("name", b"x" * 65_536) + b"--edge--\r\n")[0]["name"]) == 65_536
    with pytest.raises(InvalidForm):
        received(part("name", b"x" * 65_537) + b"--edge--\r\n")
