"""`SKILL.md`: strict where the standard is, warnings for the rest (case F3)."""

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roost.agents.library.skills.errors import InvalidSkill
from roost.agents.library.skills.skill_file import SKILL_FILE_LIMIT, SkillFile, parse_skill_file
from roost.core.problem import ProblemKind
from roost.core.sanitize import is_storable

MINIMAL = "name: demo\ndescription: Does a thing.\n"


def parse(front: str, body: str = "# Demo\n") -> SkillFile:
    return parse_skill_file(f"---\n{front}---\n{body}".encode())


def test_all_fields_of_a_skill_are_parsed() -> None:
    found = parse(
        "name: a-b2\ndescription: >\n  Reads\n  pages.\nlicense: Apache-2.0\ncompatibility: needs git\n"
        "metadata:\n  author: me\n  version: '1.0'\nallowed-tools: Bash(git add:*) Read\n"
    )
    assert (found.name, found.description, found.license) == ("a-b2", "Reads pages.", "Apache-2.0")
    assert found.compatibility == "needs git"
    assert found.metadata == {"author": "me", "version": "1.0"}
    assert found.allowed_tools == ("Bash(git add:*)", "Read")
    assert found.warnings == ()


def test_a_minimal_file_has_no_warnings() -> None:
    assert parse(MINIMAL) == SkillFile("demo", "Does a thing.")


def test_a_byte_order_mark_and_windows_lines() -> None:
    found = parse_skill_file(b"\xef\xbb\xbf---\r\nname: demo\r\ndescription: x\r\n--- \r\nbody\r\n")
    assert (found.name, found.description) == ("demo", "x")


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "a--b", "a b", "a/b", "..", "\u0430bc", "a" * 65])
def test_names_that_the_standard_refuses(name: str) -> None:
    with pytest.raises(InvalidSkill, match="name"):
        parse(f"name: '{name}'\ndescription: x\n")


@pytest.mark.parametrize(
    ("front", "reason"),
    [
        ("name: demo\n", "description is missing"),
        ("description: x\n", "name is missing"),
        (f"name: demo\ndescription: {'x' * 1025}\n", "at most 1024"),
        (f"{MINIMAL}compatibility: {'x' * 501}\n", "at most 500"),
        ("name: [demo]\ndescription: x\n", "name must be text"),
        (f"{MINIMAL}metadata: [1]\n", "metadata must be a mapping"),
        (f"{MINIMAL}metadata: {{{', '.join(f'k{n}: v' for n in range(65))}}}\n", "at most 64"),
        (f"{MINIMAL}allowed-tools: {{a: b}}\n", "allowed-tools"),
        (f"{MINIMAL}allowed-tools: {'a ' * 101}\n", "at most 100"),
        (f"{MINIMAL}license: a\x07b\n", ":4: control character U.0007"),
        (f"{MINIMAL}a: b: c\n", ":4: `: ` inside"),
    ],
)
def test_fields_that_are_refused(front: str, reason: str) -> None:
    with pytest.raises(InvalidSkill, match=reason) as caught:
        parse(front)
    assert caught.value.kind is ProblemKind.INVALID


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", ":1"),
        (b"# Demo\n", ":1"),
        (b"---\nname: demo\n", "no `---` ends"),
        (b"---\n" + b"#\n" * 40_000 + b"---\n", "within 64 KiB"),
        (b"---\nname: \xff\n---\n", "not UTF-8"),
        (b"x" * (SKILL_FILE_LIMIT + 1), "larger than 256 kB"),
    ],
)
def test_files_that_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidSkill, match=reason):
        parse_skill_file(data)


def test_fields_outside_the_standard_are_warnings() -> None:
    found = parse(f"{MINIMAL}user-invocable: true\nmetadata: {{openclaw: {{emoji: x}}}}\n", "x\n" * 600)
    assert [warning.split(";")[0] for warning in found.warnings] == [
        "unknown key 'user-invocable'",
        "metadata.openclaw is nested",
        "the body has 601 lines",
    ]
    assert found.metadata == {"openclaw": '{"emoji": "x"}'}
    assert parse(MINIMAL, "\n").warnings == ("the body is empty: an agent learns nothing but the description",)


_SYNTAX = st.sampled_from("-:?[]{},&*!|>'\"%@`#~\n\t \\\0")
_WORDS = st.sampled_from(
    ["<<", "---\n", "...", "!!python/object:os.system", "\\u0000", "name: demo\n", "description: x\n"]
)
_FRONT = st.lists(_SYNTAX | _WORDS | st.text(max_size=5), max_size=40)


@settings(max_examples=500)
@given(_FRONT.map("".join), st.text(max_size=50))
@example(MINIMAL + "x: " + "[" * 5000, "")
@example(MINIMAL + "x: " + "{a: " * 5000, "")
@example(MINIMAL + "- " * 5000, "")
@example(MINIMAL + "? " * 5000, "")
@example(MINIMAL + 'license: "\\0\\ud800"\n', "")
@example(MINIMAL, "a\0b")
def test_any_text_is_refused_or_storable(front: str, body: str) -> None:
    """Case F3: the reader constructs nothing, expands nothing, and what it returns can be stored."""
    try:
        found = parse_skill_file(f"---\n{front}\n---\n{body}".encode("utf-8", "surrogatepass"))
    except InvalidSkill:
        return
    texts = [found.name, found.description, found.license or "", found.compatibility or "", *found.warnings]
    texts += [text for pair in found.metadata.items() for text in pair] + list(found.allowed_tools)
    assert all(is_storable(text) for text in texts)
    assert len(found.description) <= 1024


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "a number") for name in ("12306", "0", "007", "1e3", "0x10", "0b11", "0o17")),
        *((name, "a truth value") for name in ("yes", "no", "on", "off", "true", "false", "y", "n")),
        ("2026-01-01", "a date"),
        ("null", "nothing"),
    ],
)
def test_a_name_that_engines_read_as_something_else_needs_quotes(name: str, kind: str) -> None:
    with pytest.raises(InvalidSkill, match=f"^SKILL.md:2: engines read the name {name} as {kind}; put it into quotes"):
        parse_skill_file(f"---\nname: {name}\ndescription: x\n---\nbody\n".encode())
    with pytest.raises(InvalidSkill, match=r"^SKILL.md:3: engines read the description"):
        parse_skill_file(f"---\nname: demo\ndescription: {name}\n---\nbody\n".encode())
    for quoted in (f'"{name}"', f"'{name}'"):
        assert parse_skill_file(f"---\nname: {quoted}\ndescription: x\n---\nbody\n".encode()).name == name
        loaded = yaml.safe_load(f"name: {quoted}")  # what Hermes does with it
        assert loaded == {"name": name}
