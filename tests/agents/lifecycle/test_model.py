"""The box of an agent: two sockets lead out, and every program in it is told of the proxy."""

from pathlib import Path

from roost.agents.lifecycle.model import API_PORT, PROXY_PORT, PROXY_URL, TrustedAuthorities, box_spec
from roost.drivers.runtime.contract import ContainerLimits, ReadOnlyMount


def test_the_relays_and_the_egress_by_name() -> None:
    spec = box_spec("ada", (), ContainerLimits())
    assert spec.relays == {API_PORT: "api", PROXY_PORT: "proxy"}
    assert spec.egress == "proxy"


def test_programs_find_the_proxy_however_they_spell_it() -> None:
    env = box_spec("ada", (), ContainerLimits()).env
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        assert env[name] == env[name.lower()] == PROXY_URL
    assert "127.0.0.1" in env["NO_PROXY"].split(",")
    assert env["no_proxy"] == env["NO_PROXY"]
    assert env["NODE_USE_ENV_PROXY"] == "1"


def test_what_is_given_is_passed_on() -> None:
    mounts, limits = [ReadOnlyMount(Path("/opt/e"), "/engine/e")], ContainerLimits(pids=7)
    spec = box_spec("ada", mounts, limits)
    assert (spec.agent_id, spec.mounts, spec.limits) == ("ada", tuple(mounts), limits)
    assert spec.env["AGENT_ID"] == "ada"


def test_what_is_trusted_is_added_and_nothing_when_nothing_is() -> None:
    mount = ReadOnlyMount(Path("/opt/e"), "/engine/e")
    trust = TrustedAuthorities(
        [ReadOnlyMount(Path("/data/trust"), "/run/trust")], {"SSL_CERT_FILE": "/run/trust/bundle.pem"}
    )
    bare, spec = box_spec("ada", [mount], ContainerLimits()), box_spec("ada", [mount], ContainerLimits(), trust)
    assert spec.mounts == (mount, *trust.mounts)
    assert spec.env == {**bare.env, **trust.env}
    assert not {"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} & bare.env.keys()
