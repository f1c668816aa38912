"""Secret values are masked in every form in which a log writes them."""

import json
import time
from urllib.parse import quote

import pytest

from roost.core.secret_mask import SecretMask
from roost.core.sensitive import Sensitive

VALUE = 's3 cr"et/é\\x'


def mask(*values: str) -> SecretMask:
    return SecretMask(Sensitive(value) for value in values)


@pytest.mark.parametrize(
    "form", [VALUE, json.dumps(VALUE), json.dumps(VALUE, ensure_ascii=False), quote(VALUE), quote(VALUE, safe="")]
)
def test_a_value_in_every_form(form: str) -> None:
    shown = mask(VALUE)(f"a {form} b {form}")
    assert shown.count("[redacted]") == 2
    assert "s3" not in shown
    assert "x" not in shown


def test_a_value_of_several_lines_is_masked_line_by_line() -> None:
    pem = "-----BEGIN KEY-----\nabcdef\r\n  ghijkl  \n\nx\n"
    shown = [mask(pem)(line) for line in ("-----BEGIN KEY-----", "abcdef", "ghijkl", "x", "")]
    assert shown == ["[redacted]", "[redacted]", "[redacted]", "x", ""]


def test_overlapping_secrets_are_covered_as_a_whole() -> None:
    assert mask("abcdef", "defghi", "cdef")("<abcdefghi>") == "<[redacted]>"
    assert mask("abab")("abababab") == "[redacted][redacted]"
    assert mask("longer-value", "long")("longer-value long") == "[redacted] [redacted]"


@pytest.mark.parametrize("values", [(), ("",), ("abc",), ("\n\n",)])
def test_short_values_are_not_masked(values: tuple[str, ...]) -> None:
    assert mask(*values)("abc abc") == "abc abc"


def test_hostile_text_costs_no_more_than_its_length() -> None:
    """A hundred long values, and text of their prefixes: quadratic work would take minutes."""
    covered = mask(*("a" * 5_000 + str(number) for number in range(100)))
    before = time.process_time()
    assert covered("a" * 16_000) == "a" * 16_000
    assert time.process_time() - before < 10
