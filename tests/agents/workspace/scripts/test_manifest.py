"""Parsing of manifests: scripts, no scripts, or a reason."""

import json

import pytest

from roost.agents.workspace.scripts import manifest
from roost.agents.workspace.scripts.manifest import ManifestScripts
from roost.agents.workspace.scripts.model import InvalidManifest


def parse(scripts: object) -> ManifestScripts:
    return manifest.parse_manifest(json.dumps({"version": 1, "scripts": scripts}).encode(), "a.agents.localhost:8642")


def test_both_scripts_with_the_host_filled_in() -> None:
    found = parse({"build": "npm ci", "start": "serve --base http://__AGENT_HOST__/x --host __AGENT_HOST__"})
    assert found.build == "npm ci"
    assert found.start == "serve --base http://a.agents.localhost:8642/x --host a.agents.localhost:8642"
    assert len(found.digest) == 64


def test_a_changed_manifest_is_another_one() -> None:
    assert parse({"build": "a"}).digest != parse({"build": "b"}).digest


@pytest.mark.parametrize("scripts", [None, {}, {"build": ""}, {"build": None, "start": " \n"}, {"other": 7}])
def test_manifest_may_have_no_scripts(scripts: object) -> None:
    found = parse(scripts)
    assert (found.build, found.start) == (None, None)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe{}", "not valid JSON"),
        (b"[" * 500_000, "not valid JSON"),
        (b'{"a":' * 100_000, "not valid JSON"),
        (b'{"n": ' + b"9" * 10_000 + b"}", "not valid JSON"),
        (b"[]", "not an object"),
        (b"null", "not an object"),
        (b'{"scripts": []}', "scripts is not an object"),
        (b'{"scripts": "npm ci"}', "scripts is not an object"),
        (b'{"scripts": {"build": 7}}', "scripts.build is not a string"),
        (b'{"scripts": {"start": ["a"]}}', "scripts.start is not a string"),
        (b'{"scripts": {"build": "a\\u0000b"}}', "NUL"),
        (b'{"scripts": {"build": "\\ud800"}}', "not valid text"),
        (json.dumps({"scripts": {"start": "x" * 70_000}}).encode(), "longer than 64 KiB"),
        (json.dumps({"scripts": {"start": manifest.HOST_PLACEHOLDER * 5_000}}).encode(), "longer than 64 KiB"),
    ],
    ids=range(16),
)
def test_malformed_manifests_are_refused_with_a_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(InvalidManifest, match=reason):
        manifest.parse_manifest(raw, "a.agents.localhost:8642")


def test_a_byte_order_mark_is_no_harm() -> None:
    assert manifest.parse_manifest(b"\xef\xbb\xbf" + b'{"scripts": {"build": "a"}}', "h").build == "a"
