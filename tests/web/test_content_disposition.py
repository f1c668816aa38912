"""No name of a file ends a header or means two things."""

import re
from email.message import Message

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.web.responses import content_disposition

HEADER = re.compile(r"[\x20-\x7e]*", re.ASCII)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("", "inline"),
        ("a.txt", 'inline; filename="a.txt"'),
        ("a b;c=d.txt", 'inline; filename="a b;c=d.txt"'),
        ('say "hi".txt', "inline; filename=\"say _hi_.txt\"; filename*=UTF-8''say%20%22hi%22.txt"),
        ("100%.txt", "inline; filename=\"100_.txt\"; filename*=UTF-8''100%25.txt"),
        ("\u00fc\u6f22.txt", "inline; filename=\"__.txt\"; filename*=UTF-8''%C3%BC%E6%BC%A2.txt"),
        ("../../etc/passwd", 'inline; filename="....etcpasswd"'),
        ("a\\b", 'inline; filename="ab"'),
        ("a\r\nX-Evil: 1", 'inline; filename="aX-Evil: 1"'),
        ("a\0b\x1b[0m\x7f", 'inline; filename="ab[0m"'),
        ("gnp\u202e.exe", 'inline; filename="gnp.exe"'),
        ("/", "inline"),
        ("\n", "inline"),
    ],
)
def test_names_are_encoded_for_the_header(name: str, wanted: str) -> None:
    assert content_disposition("inline", name) == wanted


def test_a_name_is_cut() -> None:
    assert content_disposition("attachment", "n" * 1000) == f'attachment; filename="{"n" * 255}"'


@given(st.text(max_size=40))
def test_any_name_is_one_header_that_others_read_alike(name: str) -> None:
    header = content_disposition("attachment", name)
    assert HEADER.fullmatch(header)
    read = Message()
    read["Content-Disposition"] = header
    assert read.get_content_disposition() == "attachment"
    told = read.get_filename() or ""
    kept = "".join(sign for sign in name if sign.isprintable() and sign not in "/\\")
    plain = "".join(sign if sign.isascii() and sign not in '"%' else "_" for sign in kept)
    assert told.strip() == plain.strip()
