"""The front matter is read as PyYAML reads it, or refused."""

import random

import pytest
import yaml

from roost.agents.skills.errors import InvalidSkill
from roost.agents.skills.front_matter import DEPTH_LIMIT, parse_front_matter

BLOCKS = {
    "plain": "a: one two # comment\nb:   'it''s'\n'd e': http://x.y/z#f\n",
    "escapes": 'a: "x\\ty\\u00e9\\U0001F600\\\\"\n',
    "continued": "a: one\n  two\n\n  three\nb: x\n",
    "nested": "a:\n  b:\n    c: 1\n  d: 2\ne:\n",
    "sequences": "a:\n- 1\n- 2\nb:\n  - x: 1\n    y: 2\n  -\n    z: 3\n  - - p\n    - q\nc: end\n",
    "literal": "a: |\n  one\n    two\n\n  three\n\nb: |-\n  x\nc: |+\n  y\n\nd: |2\n   z\n",
    "folded": "a: >\n  one\n  two\n\n  three\n    four\n  five\nb: >-\n\n  x\n  y\n",
    "flow": "a: { b: [1, 'two', \"three\",], c: {d: e f, g}, 'h':1 }\nb: []\nc: {}\n",
    "flow lines": 'metadata:\n  {\n    "x":\n      { "emoji": "\\u2705", "bins": ["op"], \n      },\n  }\n',
    "quoted over lines": "a: \"one\n  two\n\n  three \\\n  four\"\nb: 'five\n  six'\n",
    "comments": "# first\na: 1\n\n  # indented\nb: 2\n",
    "plain below": "a:\n  one\n  two\nb: x\n",
    "odd plain": "a: -1\nb: a:b\nc: ?x\nd: x#y\ne: a, [b] {c}\n",
    "windows": "a: 1\r\nb:\r\n  - x\r\n",
}


def read_by_pyyaml(text: str) -> object:
    return yaml.load(text, yaml.BaseLoader)


@pytest.mark.parametrize("name", BLOCKS)
def test_yaml_is_read(name: str) -> None:
    assert parse_front_matter(BLOCKS[name]) == read_by_pyyaml(BLOCKS[name])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("- a\n", "mapping"),
        ("text\n", "mapping"),
        ("a: &x 1\n", ":1: an anchor"),
        ("b: 1\na: *x\n", ":2: an alias"),
        ("a: !!python/object/apply:os.system [id]\n", "a tag"),
        ("a: [!x 1]\n", "a tag"),
        ("<<: {a: 1}\n", "merge key"),
        ("? a\n: b\n", "cannot begin"),
        ("a: 1\na: 2\n", "twice"),
        ("a: {b: 1, b: 2}\n", "twice"),
        ("a: 1\n  b: 2\n", "`: ` inside"),
        ("a: use when: now\n", "quote the value"),
        ('a: "x" y\n', "unexpected text"),
        ('a: "x\n', "not closed"),
        ("a: [1, 2\n", "not closed"),
        ("a: [1 2: 3]\n", "expected"),
        ("a:\n\tb: 1\n", "tab"),
        ("a: 1\n b: 2\nc", ":2:"),
        ('a: "\\q"\n', "escape"),
        ('a: "\\ud800"\n', "surrogate"),
        ('a: "\\0"\n', "control character U.0000"),
        ("a: |x\n  b\n", "header"),
        ("a: @x\n", "not allowed"),
        ("a: %x\n", "not allowed"),
        ("a: " + "[" * 100_000, "nested more"),
        ("a:\n" + "".join(" " * n + "- \n" for n in range(1, 60)), "nested more"),
        ("- " * 10_000, "nested more"),
    ],
)  # fmt: skip
def test_other_yaml_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidSkill, match=reason):
        parse_front_matter(text)


def test_json_surrogate_pairs_are_one_character() -> None:
    assert parse_front_matter('a: {"b": "\\ud83e\\udded"}') == {"a": {"b": "\U0001f9ed"}}


def test_the_depth_limit() -> None:
    deep = "a: " + "[" * (DEPTH_LIMIT - 1) + "]" * (DEPTH_LIMIT - 1)
    assert parse_front_matter(deep)
    with pytest.raises(InvalidSkill, match="nested"):
        parse_front_matter("a: " + "[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT)


@pytest.mark.parametrize(
    "unit", [" ", "\n", "a: ", "'", '"', "\\", "[", "a\n", "- ", "#", "a: |\n", ": ", " \n", "{a,"]
)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    for text in (unit * (64_000 // len(unit)), f'a: "{unit * (60_000 // len(unit))}"', f"a: x{unit * 20_000}"):
        try:
            parse_front_matter(text)
        except InvalidSkill:
            continue


def test_what_is_accepted_is_read_as_pyyaml_reads_it() -> None:
    """Mutations of valid text: the parser may refuse more, but never reads other values."""
    chance = random.Random(7)
    alphabet = "abc:,'\"[]{}|>-#&*! \n\t?\\x0"
    accepted = 0
    for _ in range(6000):
        text = list(BLOCKS[chance.choice(list(BLOCKS))].replace("\r", ""))
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(text))
            text[at : at + chance.randint(0, 2)] = chance.choice(alphabet)
        mutated = "".join(text) + "\n"
        try:
            found = parse_front_matter(mutated)
        except InvalidSkill:
            continue
        try:
            wanted = read_by_pyyaml(mutated)
        except (yaml.YAMLError, ValueError):
            continue  # stricter than us about indentation of flow collections and the like
        assert found == wanted, mutated
        accepted += 1
    assert accepted > 1000
