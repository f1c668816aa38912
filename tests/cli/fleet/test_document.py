"""The file of a fleet: what it takes, and errors that name file, line and field and quote no value."""

import time

import pytest

from roost.agents.setup.secrets.model import SecretKind
from roost.cli.fleet.document import InvalidFleet, parse_fleet

HEAD = "version: 1\n"
TASK = f"{HEAD}agents: [{{name: a, tasks: [{{name: t, "
SCHEDULE = "must be a cron expression or a time ahead, at most once a minute"
LITERAL = "must be ${NAME} of an environment variable; a token does not belong in a file"
CLOSED_PORT = "port 8799 is Roost's own in the container; choose another from 1025 to 65535"
CID = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"


def fault(text: str) -> str:
    with pytest.raises(InvalidFleet) as raised:
        parse_fleet(text, "roost.yaml")
    return raised.value.message


def test_texts_stay_texts() -> None:
    fleet = parse_fleet(
        HEAD
        + """
secrets:
  - {name: LOG_LEVEL, type: variable, value: on}
agents:
  - name: 007
    description:
    vibe: 1.10
    model: no
    tasks: [{name: yes, schedule: "@daily", prompt: off, enabled: off}]
""",
        "roost.yaml",
    )
    (agent,), (secret,) = fleet.agents, fleet.secrets
    assert (agent.name, agent.vibe, agent.model, secret.value, secret.type) == (
        *("007", "1.10", "no", "on"),
        SecretKind.VARIABLE,
    )
    assert agent.tasks is not None
    (task,) = agent.tasks
    assert (task.name, task.payload.message, task.enabled) == ("yes", "off", False)
    assert agent.profile() == {"description": None, "vibe": "1.10", "model": "no"}
    assert (agent.skills, agent.secrets, agent.channels) == (None, None, None)


def test_forms_of_skills() -> None:
    text = f"{HEAD}agents: [{{name: a, skills: ['@a/b', '@a/b2@1.2.0', {CID}, ./x, notes, {{clawhub_slug: '@a/c'}}]}}]"
    skills = parse_fleet(text, "f").agents[0].skills or ()
    assert [(one.slug, one.version, one.cid, one.path, one.name) for one in skills] == [
        ("@a/b", None, None, None, None),
        ("@a/b2", "1.2.0", None, None, None),
        (None, None, CID, None, None),
        (None, None, None, "./x", None),
        (None, None, None, None, "notes"),
        ("@a/c", None, None, None, None),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 2\nagents: []", "roost.yaml:1: version: Input should be 1"),
        (HEAD, "roost.yaml:1: agents: is missing"),
        (
            f"{HEAD}agents:\n- name: a\n- name: b\n  tasks:\n  - name: t\n    schedule: 61 * * * *\n    prompt: p",
            f"roost.yaml:7: agents[1].tasks[0].schedule: {SCHEDULE}",
        ),
        (
            f"{HEAD}agents: [{{name: a, tasks: [{{name: t, schedule: {{kind: every, everyMs: 1}}, prompt: p}}]}}]",
            "roost.yaml:2: agents[0].tasks[0]: the schedule, the payload or the name is malformed",
        ),
        (f"{HEAD}agents: [{{name: a, Model: m}}]", "roost.yaml:2: agents[0].Model: unknown key"),
        (
            f"{HEAD}agents: [{{name: a, routes: [{{path: /api, port: 8799, protected: false}}]}}]",
            f"roost.yaml:2: agents[0].routes[0].port: {CLOSED_PORT}",
        ),
        (
            f"{TASK}schedule: '@daily', payload: {{kind: agentTurn, mesage: x}}}}]}}]",
            "roost.yaml:2: agents[0].tasks[0].payload.mesage: unknown key",
        ),
        (f"{HEAD}agents: [{{name: a}}, {{name: ' a'}}]", "roost.yaml:2: agents[1]: 'a' stands twice"),
        (f"{HEAD}agents: [{{name: a, skills: [x, x]}}]", "roost.yaml:2: agents[0].skills[1]: 'x' stands twice"),
        (f"{HEAD}agents: [{{name: a, skills: }}]", "roost.yaml:2: agents[0].skills: must be a list"),
        (
            f"{HEAD}agents: [{{name: a, skills: [{{slug: '@a/b', path: ./x}}]}}]",
            "roost.yaml:2: agents[0].skills[0]: a skill has one of slug, cid, path and name",
        ),
        (f"{HEAD}agents: [{{name: '<b>'}}]", "roost.yaml:2: agents[0].name: Agent name contains invalid characters"),
        (
            f"{HEAD}agents: [{{name: a, secrets: [PATH]}}]",
            "roost.yaml:2: agents[0].secrets[0]: Secret name PATH is reserved",
        ),
        (
            f"{HEAD}agents: []\nsecrets:\n- name: KEY\n  value: literal",
            f"roost.yaml:4: secrets[0]: {LITERAL}",
        ),
        (
            f"{HEAD}agents: [{{name: a, channels: {{telegram: {{botToken: literal}}}}}}]",
            f"roost.yaml:2: agents[0].channels.telegram.botToken: {LITERAL}",
        ),
        (f"{HEAD}agents: &a [*a]", "roost.yaml:2: an anchor is not allowed; quote a value that begins with `&`"),
        (f"{HEAD}agents: []\nagents: []", "roost.yaml:3: the key `agents` stands twice"),
        ("- a", "roost.yaml:1: must be a mapping of keys to values"),
        ("", "roost.yaml:1: empty; must be a mapping of keys to values"),
    ],
)
def test_errors_name_the_place_in_the_file(text: str, message: str) -> None:
    assert fault(text) == message
    assert "literal" not in fault(text)


def test_all_errors_come_at_once_up_to_a_limit() -> None:
    lines = fault(f"{HEAD}agents: [{', '.join(['{}'] * 30)}]").splitlines()
    assert lines[0] == "roost.yaml:2: agents[0].name: is missing"
    assert (len(lines), lines[-1]) == (21, "and 10 more")


def test_a_single_time_may_have_passed() -> None:
    for schedule in ("2020-01-01T09:00:00+01:00", "{kind: at, at: 2020-01-01T08:00:00Z}"):
        fleet = parse_fleet(f"{HEAD}agents: [{{name: a, tasks: [{{name: t, schedule: {schedule}, prompt: p}}]}}]", "f")
        tasks = fleet.agents[0].tasks
        assert tasks is not None
        (task,) = tasks
        assert str(task.schedule.at).startswith("2020-01-01")


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}agents: {'[' * 60_000}",
        HEAD + "".join(f"{' ' * depth}a:\n" for depth in range(300)),
        f"{HEAD}agents: [{', '.join(['{name: a}'] * 13_000)}]",
        HEAD + "a: &a [x, x]\n" + "".join(f"a{n}: &a{n} [*a, *a]\n" for n in range(30)),
        HEAD + "# " + "x" * 10_000_000,
        f"{HEAD}agents: [{{name: a, tasks: [{{name: t, schedule: '{'9' * 100_000}', prompt: p}}]}}]",
        f"{HEAD}agents: [{{name: '{'a' * 100_000}'}}]",
    ],
)
def test_hostile_files_are_refused_soon(text: str) -> None:
    start = time.process_time()
    assert len(fault(text)) < 2000
    assert time.process_time() - start < 2
