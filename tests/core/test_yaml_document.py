"""The reader builds what PyYAML's `BaseLoader` builds, or refuses."""

import contextlib
import time

import pytest
import yaml

from roost.core.yaml_document import DEPTH_LIMIT, EVENT_LIMIT, TEXT_LIMIT, InvalidYamlDocument, parse_yaml

BLOCKS = {
    "plain": "a: one two # comment\nb:   'it''s'\n'd e': http://x.y/z#f\n",
    "no types": "a: 1.10\non: yes\nb: null\nc: 2026-01-02\nd: 0x10\ne:\nf: ~\n",
    "escapes": 'a: "x\\ty\\u00e9\\U0001F600\\\\"\n',
    "continued": "a: one\n  two\n\n  three\nb: x\n",
    "nested": "a:\n  b:\n    c: 1\n  d: 2\ne:\n",
    "sequences": "a:\n- 1\n- 2\nb:\n  - x: 1\n    y: 2\n  -\n    z: 3\n  - - p\n    - q\nc: end\n",
    "literal": "a: |\n  one\n    two\n\n  three\n\nb: |-\n  x\nc: |+\n  y\n\nd: |2\n   z\n",
    "folded": "a: >\n  one\n  two\n\n  three\n    four\n  five\nb: >-\n\n  x\n  y\n",
    "flow": "a: { b: [1, 'two', \"three\",], c: {d: e f, g}, 'h':1, i: [1 2: 3] }\nb: []\nc: {}\n",
    "flow lines": 'metadata:\n  {\n    "x":\n      { "emoji": "\\u2705", "bins": ["op"], \n      },\n  }\n',
    "quoted over lines": "a: \"one\n  two\n\n  three \\\n  four\"\nb: 'five\n  six'\n",
    "comments": "# first\na: 1\n\n  # indented\nb: 2\n",
    "plain below": "a:\n  one\n  two\nb: x\n",
    "odd plain": "a: -1\nb: a:b\nc: ?x\nd: x#y\ne: a, [b] {c}\n",
    "windows": "a: 1\r\nb:\r\n  - x\r\n",
    "marked": "---\na: 1\n...\n",
}


@pytest.mark.parametrize("name", BLOCKS)
def test_values_are_text_lists_and_mappings(name: str) -> None:
    assert parse_yaml(BLOCKS[name]).content == yaml.load(BLOCKS[name], yaml.BaseLoader)


def test_every_value_has_its_line() -> None:
    document = parse_yaml("# roost\nagents:\n  - name: Ada\n    tasks:\n\n    - {schedule: x}\n", first_line=2)
    assert document.lines == {
        (): 3,
        ("agents",): 3,
        ("agents", 0): 4,
        ("agents", 0, "name"): 4,
        ("agents", 0, "tasks"): 5,
        ("agents", 0, "tasks", 0): 7,
        ("agents", 0, "tasks", 0, "schedule"): 7,
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("- a\n", "mapping"),
        ("text\n", "mapping"),
        ("a: &x 1\n", "line 1: an anchor"),
        ("b: 1\na: *x\n", "line 2: an alias"),
        ("a: {b: &x 1, c: *x}\n", "an anchor"),
        ("&x a: 1\n", "an anchor"),
        ("a: !!python/object/apply:os.system [id]\n", "a tag"),
        ("a: [!x 1]\n", "a tag"),
        ("a: ! 1\n", "a tag"),
        ("!!set {a}\n", "a tag"),
        ("<<: {a: 1}\n", "merge key"),
        ("? [a]\n: b\n", "a key must be text"),
        ("{a: 1}: b\n", "a key must be text"),
        ("a: 1\na: 2\n", "line 2: the key `a` stands twice"),
        ("a: {b: 1, 'b': 2}\n", "twice"),
        ("a: 1\n  b: 2\n", "`: ` inside"),
        ("a: use when: now\n", "quote the value"),
        ('a: "x" y\n', "line 1: while parsing a block mapping of line 1, expected"),
        ('b: 1\na: "x\n\n', "line 4: while scanning a quoted scalar of line 2, found unexpected end"),
        ("a: [1, 2\n", "while parsing a flow sequence of line 1"),
        ("a:\n\tb: 1\n", "line 2: "),
        ("a: 1\n b: 2\nc", "line 2: "),
        ('a: "\\q"\n', "escape"),
        ('a: "\\U00110000"\n', "escape"),
        ('a: "\\UFFFFFFFF"\n', "escape"),
        ('a: "\\ud800"\n', "surrogate"),
        ('a: "\\0"\n', "control character U.0000"),
        ("b: 1\na: \x07\n", "line 2: control character U.0007"),
        ("a: \u2028\n", "control character U.2028"),
        ("a: \ud800\n", "control character U.D800"),
        ("a: |x\n  b\n", "scanning a block scalar"),
        ("a: @x\n", "cannot start"),
        ("a: %x\n", "cannot start"),
        ("%YAML 1.2\n---\na: 1\n", "directive"),
        ("%FOO bar\n---\na: 1\n", "directive"),
        ("a: 1\n---\nb: 1\n", "line 2: a second document"),
        ("a: 1\n--- x\n", "a second document"),
        ("a: " + "[" * 100_000, "nested more"),
        ("a:\n" + "".join(" " * n + "- \n" for n in range(1, 60)), "nested more"),
        ("a:\n" + "- " * 10_000, "nested more"),
        ("a: [" + "x," * EVENT_LIMIT + "]", "more than"),
        ("a: " + "x" * TEXT_LIMIT, "at most 128 KiB"),
    ],
)  # fmt: skip
def test_other_yaml_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidYamlDocument, match=reason):
        parse_yaml(text)


def test_json_surrogate_pairs_are_one_character() -> None:
    assert parse_yaml('a: {"b": "\\ud83e\\udded"}').content == {"a": {"b": "\U0001f9ed"}}


def test_the_depth_limit() -> None:
    deep = "a: " + "[" * (DEPTH_LIMIT - 1) + "]" * (DEPTH_LIMIT - 1)
    assert parse_yaml(deep)
    with pytest.raises(InvalidYamlDocument, match="nested"):
        parse_yaml("a: " + "[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT)


@pytest.mark.parametrize(
    "unit", [" ", "\n", "a: ", "'", '"', "\\", "[", "[{", "a\n", "- ", "? ", "#", "%a\n", "a: |\n", ": ", " \n", "{a,"]
)
def test_hostile_text_is_bounded(unit: str) -> None:
    many = unit * ((TEXT_LIMIT - 10) // len(unit))
    for text in (many, f'a: "{many}"', f"a: x{many}", f"a: [{many}"):
        began = time.process_time()
        with contextlib.suppress(InvalidYamlDocument):
            parse_yaml(text)
        assert time.process_time() - began < 2  # 0.3 s were measured; quadratic work takes minutes
