"""Containers of agents have two relays, and the proxy variables for every program."""

from roost.agents.lifecycle.workflows.model import HUB_URL, PROXY_URL, TrustedAuthorities, container_spec
from roost.drivers.runtime.contract import API_PORT, PROXY_PORT, ContainerLimits, EngineVersion


def test_the_relays_and_the_egress_by_name() -> None:
    spec = container_spec("ada", None, ContainerLimits())
    assert spec.relays == {API_PORT: "api", PROXY_PORT: "proxy"}
    assert spec.egress == "proxy"


def test_proxy_variables_exist_in_both_cases() -> None:
    env = container_spec("ada", None, ContainerLimits()).env
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        assert env[name] == env[name.lower()] == PROXY_URL
    assert "127.0.0.1" in env["NO_PROXY"].split(",")
    assert env["no_proxy"] == env["NO_PROXY"]
    assert env["NODE_USE_ENV_PROXY"] == "1"


def test_clients_of_clawhub_find_the_hub() -> None:
    env = container_spec("ada", None, ContainerLimits()).env
    assert env["CLAWHUB_URL"] == env["CLAWHUB_REGISTRY"] == HUB_URL


def test_engine_and_limits_are_passed_on() -> None:
    engine, limits = EngineVersion("e", "1.0"), ContainerLimits(pids=7)
    spec = container_spec("ada", engine, limits)
    assert (spec.agent_id, spec.engine, spec.limits) == ("ada", engine, limits)
    assert spec.env["AGENT_ID"] == "ada"


def test_trusted_authorities_are_added() -> None:
    bundle = "/run/trust/bundle.pem"
    trust = TrustedAuthorities({bundle: b"authorities"}, {"SSL_CERT_FILE": bundle})
    bare, spec = (container_spec("ada", None, ContainerLimits(), each) for each in (TrustedAuthorities(), trust))
    assert (bare.files, spec.files) == ({}, trust.files)
    assert spec.env == {**bare.env, **trust.env}
    assert not {"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} & bare.env.keys()
