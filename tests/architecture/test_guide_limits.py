"""The limits, times and versions that guides state are those of the code and of the tests."""

import json
import re
from collections.abc import Mapping

import pytest

from roost.agents.chat import conversations, live_answer
from roost.agents.chat import service as chat
from roost.agents.library.hub import model as hub
from roost.agents.lifecycle.versions import model as versions
from roost.agents.network.egress.proxy import EgressLimits
from roost.agents.network.egress.proxy_protocol import MAX_HEAD
from roost.agents.network.routes import model as routes
from roost.agents.network.sign_in import service as sign_in
from roost.agents.registry import last_uses
from roost.agents.registry import model as registry
from roost.agents.setup.channels import model as channels
from roost.agents.setup.channels import service as channel_service
from roost.agents.workspace.commands import service as commands
from roost.agents.workspace.git import push, request_limits
from roost.cli.fleet.document import AGENTS_LIMIT
from roost.config import load_settings
from roost.core import yaml_document
from roost.domain_names import model as domains
from roost.drivers.blob import folder_store, object_store
from roost.drivers.chat_platform import platforms
from roost.drivers.engine.abilities import chat as chat_ability
from roost.drivers.engine.abilities import configuration
from roost.drivers.engine.hermes.driver import Hermes
from roost.drivers.engine.openclaw.driver import OpenClaw
from roost.drivers.git import contract as git
from roost.events import model as events
from roost.events import service as event_service
from roost.http.server.relay import _MAX_CONNECTIONS
from roost.identity import platform_tokens
from roost.identity.sessions import model as sessions
from roost.net import dialer
from roost.settings import Settings
from roost.warden_client import tree_rules
from tests.architecture.code import ROOT, modules

KIB, MIB, GIB = 1024, 1024**2, 1024**3
WORDS = {3: "three", 5: "five", 8: "eight"}
UNITS: dict[float, str] = {60: "minute", 3600: "hour"}
EGRESS, GIT = EgressLimits(), request_limits.GitCommandLimiter()
GUIDES = {
    "agents": [
        f"A name has at most {registry.NAME_LIMIT} characters",
        f"the limit of {commands.EXEC_TIMEOUT:.0f} seconds, up to {commands.EXEC_TIMEOUT_LIMIT:.0f}",
        f"with at most {commands.OUTPUT_LIMIT // MIB} MiB of each output",
        f"after each {live_answer.SILENCE_SECONDS:.0f} seconds in which the model sends nothing",
        f"cut after {chat_ability.MAX_DETAIL:,} characters, texts of the history after {chat_ability.MAX_TEXT:,}",
        f"(409), and {conversations.MAX_ANSWERS} answers of an agent (429)",
        f"comments every {chat.ChatTimes().heartbeat:.0f} seconds",
        f"streams {chat.MAX_CHATS} answers at once (429), each of at most {chat._MAX_ANSWER // MIB} MiB",
        f"writes uses once a minute; a crash can lose those of the last {UNITS.get(last_uses._INTERVAL)}.",
    ],
    "agent-address": [
        f"Up to {routes.ROUTE_LIMIT}, each with a `pathPrefix`, a `port`",
        f"Ports are from {routes.LOWEST_PORT} to {routes.HIGHEST_PORT},",
        f"| once, within {sign_in.LIFETIME.seconds} seconds, until the token is rotated or the agent deleted |",
        f"| {sign_in.LINK_LIMIT} unused ones of an agent; one more invalidates the oldest |",
    ],
    "agent-identity": [f"a JWT that is valid for an {UNITS.get(platform_tokens.LIFETIME.seconds)}."],
    "blob-stores": [
        f"after the first {folder_store._CACHED_BYTES // MIB} MiB of an object",
        f"to a bucket** (above {object_store.PART_BYTES // MIB} MiB)",
        f"at most {object_store.PART_BYTES * 10_000 // GIB} GiB",
    ],
    "channels": [
        f"user ids of the platform, at most {channels.ALLOW_FROM_LIMIT};",
        f"does not answer within {platforms._TIMEOUT_SECONDS:.0f} seconds",
        f"an agent has {channel_service._MAX_WATCHES} such streams (429)",
    ],
    "coming-from-pinata": [f"{load_settings({}).rate_limit:,} requests a minute of a key by default"],
    "dashboard": [
        f"for {sessions.LINK_LIFETIME.seconds // 60} minutes, the newest {sessions.LINK_LIMIT} of a tenant.",
        f"after {sessions.IDLE_LIFETIME.seconds // 3600} hours without a request",
        f"after {sessions.LIFETIME.days} days in any case",
        f"when a tenant has {sessions.SESSION_LIMIT} others that were used later",
    ],
    "domains": [
        f"an agent can have up to {WORDS.get(domains.DOMAIN_LIMIT)} names",
        f"A storage gateway has up to {WORDS.get(domains.DOMAIN_LIMIT)} domains",
        f"After {WORDS.get(domains.MISSES_BEFORE_RELEASE)} look-ups in a row without it the domain is switched off",
    ],
    "egress": [
        f"| connections of one agent to the proxy | {EGRESS.connections} | 429",
        f"| connections of one agent to the API | {_MAX_CONNECTIONS} | closed |",
        f"| head of a request | {MAX_HEAD // KIB} KiB, {EGRESS.head:.0f} s | 431, 408 |",
        f"over up to {dialer._MAX_ATTEMPTS} addresses, the next one tried after {dialer._STAGGER * 1000:.0f} ms |",
        f"| no traffic in either direction | {EGRESS.idle / 60:.0f} minutes | closed, or 504",
    ],
    "engine-configuration": [f"| more than {configuration.TEXT_LIMIT // KIB} KiB | 413 |"],
    "engine-updates": [f"at most {WORDS.get(versions.VERSIONS_LIMIT)} versions of an engine"],
    "events": [
        f"Texts in it are cut to {events.MAX_DATA_CHARS} characters",
        f"after each {event_service.HEARTBEAT_SECONDS:.0f} s without an event",
        f"kept for an {UNITS.get(events.RETENTION.seconds)}",
        f"at most the newest {events.MAX_EVENTS:,} of a tenant",
        f"One credential can have {events.MAX_STREAMS} streams.",
    ],
    "fleet": [
        f"at most {yaml_document.TEXT_LIMIT:,} characters, {yaml_document.EVENT_LIMIT // 2:,} keys with",
        f"and {AGENTS_LIMIT} agents.",
    ],
    "git": [
        f"| pack of one push | {git.MAX_PACK_BYTES // GIB} GiB |",
        f"| repository | {git.MAX_REPOSITORY_BYTES // GIB} GiB; a larger one takes no more pushes |",
        f"| files of a commit, bytes in all | {push.MAX_FILES:,}, {push.MAX_TREE_BYTES // GIB} GiB |",
        f"more than {GIT._each} commands of your tenant, or {GIT._total} in all, run for {GIT._wait:.0f} seconds",
        f"{tree_rules.MAX_NAME_BYTES} bytes in a name, 256 parts, {tree_rules.MAX_PATH_BYTES:,} bytes in all",
    ],
    "hub": [
        f"1 to {hub.PAGE_LIMIT}, {hub.PAGE_DEFAULT} by default",
        f"at most {hub.TAGS_LIMIT} tags",
        f"the first {WORDS.get(hub.TERMS_LIMIT)} count",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("guide", "sentence"), [(guide, one) for guide, all_ in GUIDES.items() for one in all_])
def test_a_guide_states_what_the_code_does(guide: str, sentence: str) -> None:
    assert sentence in " ".join((ROOT / "docs" / "guides" / f"{guide}.md").read_text().split())


def test_the_guide_of_events_names_each_type() -> None:
    table = (ROOT / "docs" / "guides" / "events.md").read_text().partition("## Who changed it")[0]
    rows = re.findall(r"^\| (`[a-z]+\.[a-z]+`.*?) \|", table, re.MULTILINE)
    assert sorted(re.findall(r"`([^`]+)`", " ".join(rows))) == sorted(events.STORED_TYPES)


def package_versions(folder: str) -> dict[str, str]:
    """Return the pinned versions of a client's package.json, by the names of the packages."""
    pinned: dict[str, str] = json.loads((ROOT / "tests" / "clients" / folder / "package.json").read_text())[
        "dependencies"
    ]
    return {name: version.rpartition("@")[2] for name, version in pinned.items()}


def test_guides_name_the_versions_that_are_tested() -> None:
    sdks, old, clawhub = (package_versions(folder) for folder in ("", "old", "clawhub"))
    openclaw, hermes = OpenClaw.default_version, Hermes.default_version
    shown = {
        "coming-from-pinata": [
            *(f"npm [`{name}` {sdks[name]}]" for name in ("pinata", "pinata-web3")),
            f"npm [`pinata` {old['pinata-1']}]",
            f"npm [`@pinata/sdk` {old['@pinata/sdk']}]",
        ],
        "hub": [f"the versions {clawhub['clawhub']} and {clawhub['clawhub-forms']} are tested"],
        "channels": [f"| OpenClaw {openclaw} |", f"| Hermes {hermes} |"],
        "devices": [f"npx openclaw@{openclaw} "],
    }
    for guide, sentences in shown.items():
        text = " ".join((ROOT / "docs" / "guides" / f"{guide}.md").read_text().split())
        assert [one for one in sentences if one not in text] == []


def test_the_table_of_the_data_folder_names_all_that_is_in_it() -> None:
    page = (ROOT / "docs/guides/operating.md").read_text()
    rows = page[page.index("| in the data folder |") :]
    named = {name.partition("/")[0] for name in re.findall(r"`([\w./-]+)`", rows)}
    used = re.compile(r"\bsettings\.data / \"([\w.-]+)")
    found = {name for module in modules() for name in used.findall((ROOT / module.path).read_text())}
    assert len(found) > 5
    assert found - named == set()


DEFAULTS = [
    ("models", "`model_timeout` (600 s)", {"model_timeout": "600"}),
    ("models", "`model_idle_timeout` (120 s)", {"model_idle_timeout": "120"}),
    ("operating", "6,000 requests, 50 GiB", {"rate_limit": "6000", "rate_limit_bytes": "50G"}),
    ("operating", "60,000 requests, 200 GiB", {"host_rate_limit": "60000", "host_rate_limit_bytes": "200G"}),
    ("operating", "sign-in links of one address | 300", {"failed_login_limit": "300"}),
    ("operating", "An agent may occupy `agent_disk` (20G)", {"agent_disk": "20G"}),
    ("operating", "`disk_reserve` (1G", {"disk_reserve": "1G"}),
    ("operating", "apply to programs on this machine | `false`", {"rate_limit_loopback": "false"}),
    ("snapshots", "a minute after the last change (`snapshot_delay`)", {"snapshot_delay": "60"}),
    ("storage", "1 GiB free, 25 GiB paid", {"upload_free": "1G", "upload_paid": "25G"}),
    ("storage", "10 GiB free, unlimited paid", {"storage_free": "10G", "storage_paid": "none"}),
    ("storage-gateways", "kept for 90 days ([`analytics_days`]", {"analytics_days": "90"}),
]
"""Words of a page, with settings and their defaults."""


@pytest.mark.parametrize(("page", "words", "defaults"), DEFAULTS)
def test_defaults_in_a_guide_are_those_of_the_settings(page: str, words: str, defaults: Mapping[str, str]) -> None:
    assert words in " ".join((ROOT / f"docs/guides/{page}.md").read_text().split())
    assert {name: Settings.model_fields[name].default for name in defaults} == defaults
