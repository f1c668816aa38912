"""Wants are read from every documented form."""

import pytest

from roost.agents.library.skills.skill_file import parse_skill_file
from roost.agents.library.skills.skill_wants import DESCRIPTION_LIMIT, SkillWants, WantedSecret


def wants(front: str, env_example: bytes | None = None) -> SkillWants:
    return parse_skill_file(f"---\nname: demo\ndescription: x\n{front}---\nbody\n".encode(), env_example).wants


@pytest.mark.parametrize("owner", ["openclaw", "clawdbot", "clawdis"])
def test_requirements_of_openclaw(owner: str) -> None:
    text = f'{{ "{owner}": {{ "requires": {{ "bins": ["git", "jq"], "env": ["A_KEY"] }}, "primaryEnv": "B_KEY" }} }}'
    wanted = SkillWants((WantedSecret("A_KEY"), WantedSecret("B_KEY", required=False)), ("git", "jq"))
    for front in (f"metadata: {text}\n", f"metadata:\n  {owner}: '{text[len(owner) + 6 : -1]}'\n"):
        assert wants(front) == wanted


def test_our_own_metadata() -> None:
    nested = (
        "metadata:\n  roost:\n    secrets:\n      - A_KEY\n      - name: B_KEY\n        description: of b\n"
        "        required: false\n    programs: [git]\n    hosts: [API.example.org, '*.example.com']\n"
    )
    assert wants(nested) == SkillWants(
        (WantedSecret("A_KEY"), WantedSecret("B_KEY", "of b", required=False)),
        ("git",),
        ("api.example.org", "*.example.com"),
    )
    flat = "metadata:\n  roost.secrets: A_KEY, B_KEY?\n  roost.programs: git python3\n  roost.hosts: a.example.org\n"
    assert wants(flat) == SkillWants(
        (WantedSecret("A_KEY"), WantedSecret("B_KEY", required=False)), ("git", "python3"), ("a.example.org",)
    )


def test_requirements_of_hermes() -> None:
    front = (
        "required_environment_variables:\n  - name: A_KEY\n    prompt: Key of a\n  - B_KEY\n"
        "prerequisites:\n  env_vars: [C_KEY]\n  commands: [ffmpeg]\n"
    )
    assert wants(front) == SkillWants(
        (WantedSecret("A_KEY", "Key of a"), WantedSecret("B_KEY"), WantedSecret("C_KEY")), ("ffmpeg",)
    )


def test_the_example_of_an_environment() -> None:
    example = b"# from your\n# account\nA_KEY=\n\nexport B_KEY = 'x' # default\nnot a line\n# lost\n\nC_KEY=\xff\n"
    assert wants('metadata: {roost.secrets: "A_KEY?"}\n', example).secrets == (
        WantedSecret("A_KEY", "from your account", required=False),
        WantedSecret("B_KEY", required=False),
        WantedSecret("C_KEY", required=False),
    )


def test_malformed_wants_are_warnings() -> None:
    front = "metadata: {roost: {secrets: ['a=b', PATH, {a: b}], programs: [../sh], hosts: ['http://x', localhost]}}\n"
    found = parse_skill_file(f"---\nname: demo\ndescription: x\n{front}---\nbody\n".encode())
    assert found.wants == SkillWants()
    assert sum("is ignored" in warning for warning in found.warnings) == 6


def test_wants_are_bounded() -> None:
    example = b"".join(b"# %s\x07\nK%d=\n" % (b"x" * 2000, n) for n in range(60))
    found = wants("", example)
    assert len(found.secrets) <= 50
    assert all(len(secret.description) <= DESCRIPTION_LIMIT for secret in found.secrets)
