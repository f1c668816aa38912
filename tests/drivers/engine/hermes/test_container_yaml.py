"""The program that processes YAML in a container, called as a function; `tests/conformance` runs it in one."""

import json

import pytest

yaml = pytest.importorskip("yaml")

from roost.drivers.engine.hermes.container_yaml import PLACEHOLDER, main  # noqa: E402 - needs yaml

BILLION = "b0: &b0 [1, 1]\n" + "".join(f"b{n}: &b{n} [*b{n - 1}, *b{n - 1}]\n" for n in range(1, 40))


def redact(text: str) -> object:
    return main("show", {"text": text})["text"]


def restore(text: str, before: str) -> dict[str, object]:
    return main("restore", {"text": text, "before": before})


@pytest.mark.parametrize("text", ["", "# nothing\n", "a: 1", '{"a": {"b": [1, null]}}', "a: &x {b: 1}\nc: *x\n"])
def test_a_mapping_is_valid(text: str) -> None:
    assert main("check", {"text": text}) == {"valid": True, "output": "Valid", "text": text}


@pytest.mark.parametrize(
    "text", ["{", "a: [", "a: b: c", "\0", "a: 1\n---\nb: 2", "!!python/object/apply:os.system ['id']", "a: !mine 1"]
)
def test_unreadable_yaml_is_invalid(text: str) -> None:
    found = main("check", {"text": text})
    assert found["valid"] is False
    assert found["output"]


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 100_000, "- " * 100_000, BILLION, "a: &x [*x]"])
def test_expensive_yaml_is_rejected(text: str) -> None:
    for found in (main("check", {"text": text}), main("show", {"text": text}), restore(f"{text}\n", "")):
        assert found["valid"] is False


@pytest.mark.parametrize("text", ["[1]", "7", "text", "true"])
def test_yaml_that_is_not_a_mapping(text: str) -> None:
    found = main("check", {"text": text})
    assert found["valid"] is False
    assert "expected a mapping" in str(found["output"])


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "API_KEY",
        "apikey",
        "key",
        "bot_token",
        "token",
        "client-secret",
        "password",
        "apiKey",
        "botToken",
        "clientSecret",
        "dbpassword",
    ],
)
def test_secrets_are_recognized_by_their_keys(name: str) -> None:
    text = f"# \u00e9\nmine:\n  {name}: 's3cret'  # mine\n  max_tokens: 5\n"
    assert redact(text) == f"# \u00e9\nmine:\n  {name}: '{PLACEHOLDER}'  # mine\n  max_tokens: 5\n"


@pytest.mark.parametrize(
    "text", ["max_tokens: 5\n", "keys: [a]\n", "api_key: ''\n", "api_key: ${MINE}\n", "token: {a: 1}\n"]
)
def test_other_values_are_not_secrets(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "secret", ["s3cret", "'s: 3'", '"s\\n3"', "|\n    line one\n    line two", ">-\n    folded\n    text", "007"]
)
def test_a_redacted_text_is_restored(secret: str) -> None:
    before = f"a: [{{token: x1}}, {{token: x2}}]\nmine:\n  api_key: {secret}\nlast: 1\n"
    seen = str(redact(before))
    assert seen.count(PLACEHOLDER) == 3
    again = restore(seen.replace("last: 1", "last: 2"), before)
    assert again["valid"] is True
    assert yaml.safe_load(str(again["text"])) == {**yaml.safe_load(before), "last": 2}


def test_json_stays_json() -> None:
    assert json.loads(str(redact('{"api_key": "s3cret", "n": 1}'))) == {"api_key": PLACEHOLDER, "n": 1}


def test_a_secret_behind_an_alias_is_shown_nowhere() -> None:
    assert "s3cret" not in str(redact("base: &b {token: s3cret}\nuse: *b\nalso: {<<: *b}\n"))


@pytest.mark.parametrize(
    "text", [f"token: {PLACEHOLDER}", f"a: {{token: {PLACEHOLDER}}}", f"other: {PLACEHOLDER}", f"- {PLACEHOLDER}"]
)
def test_a_placeholder_without_a_value_is_rejected(text: str) -> None:
    found = restore(text, "api_key: s3cret\nother: open\n")
    assert found["valid"] is False
    assert PLACEHOLDER in str(found["output"])


def test_a_placeholder_reveals_no_other_value() -> None:
    assert restore(f"display: {PLACEHOLDER}", "token: s3cret\ndisplay: plain\n")["valid"] is False
