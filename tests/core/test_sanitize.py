"""Foreign text: control characters and bidirectional marks are removed, everything else stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.sanitize import is_storable, sanitize_line, sanitize_lines

MARK = "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[1;38;5;196mbold\x1b[m", "bold"),
        ("\x1b[2J\x1b[Hcleared", "cleared"),
        ("\x1b[?25lhidden cursor", "hidden cursor"),
        ("\x1b]0;a title\x07shown", "shown"),
        ("\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bcreset", f"{MARK}creset"),
        ("\x9b31mred", f"{MARK}31mred"),
        ("good\rbad", f"good{MARK}bad"),
        ("ab\b\bxy", f"ab{MARK}{MARK}xy"),
        ("user\u202etxt.exe", f"user{MARK}txt.exe"),
        ("\u2066over\u2069", f"{MARK}over{MARK}"),
        ("half \ud83d", f"half {MARK}"),
        ("two\u2028lines", f"two{MARK}lines"),
        ("a\x1b", f"a{MARK}"),
        ("one\ntwo", f"one{MARK}two"),
    ],
)
def test_control_characters_are_removed(text: str, shown: str) -> None:
    assert sanitize_line(text) == shown


@pytest.mark.parametrize(
    "text", ["", "a\tb", "Büro 名前", "👩\u200d💻 a\u00a0b", "[red]no markup[/red]", r"\[x]", "¿?"]
)
def test_written_text_stays(text: str) -> None:
    assert sanitize_line(text) == text


def test_lines_stay_lines_whatever_ends_them() -> None:
    assert sanitize_lines("a\r\nb\n\n\x1b[31mc\n") == "a\nb\n\nc\n"


@given(st.text())
def test_nothing_is_left_that_steers(text: str) -> None:
    shown = sanitize_lines(text)
    assert not any(sign < " " and sign not in "\t\n" for sign in shown)
    assert not any("\x7f" <= sign <= "\x9f" for sign in shown)
    shown.encode()
    assert sanitize_lines(shown) == shown


@pytest.mark.parametrize("text", ["", "a", "\u00fc\u6f22\U0001f600", "\x01\x7f\u202e\n", "\ufffe\ue000\U0010ffff"])
def test_ordinary_text_is_storable(text: str) -> None:
    assert is_storable(text)
    assert text.encode().decode() == text


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "a\udc00b"])
def test_text_that_some_database_refuses_is_not_storable(text: str) -> None:
    assert not is_storable(text)


@given(st.text())
def test_storable_text_can_be_encoded(text: str) -> None:
    if is_storable(text):
        text.encode()
    else:
        assert "\0" in text or text.encode("utf-8", "replace").decode() != text
