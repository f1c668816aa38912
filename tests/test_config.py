"""Configuration: the sources of settings, and refused values."""

from ipaddress import ip_address
from pathlib import Path

import pytest

from roost import app
from roost.app.agent_egress import agent_dialer
from roost.app.core_services import build_core_services
from roost.config import load_settings, variable_name
from roost.core.payment_asset import PaymentAsset, PaymentNetwork
from roost.net.policy import EgressPolicy
from roost.settings import BadSettings, Settings

TOKEN = "0x" + "ab" * 20


def settings(folder: Path, **environment: str) -> Settings:
    return load_settings({"ROOST_DATA": str(folder), **environment})


def test_defaults_need_nothing(tmp_path: Path) -> None:
    found = settings(tmp_path, HOME=str(tmp_path))
    assert (found.host, found.port, found.domain, found.public_port) == ("127.0.0.1", 8642, "localhost", 8642)
    assert found.database_url.reveal() == f"sqlite:///{tmp_path / 'roost.db'}"
    assert (found.quota_free, found.quota_paid) == (1, 20)
    assert found.upstreams == ()


def test_flag_over_environment_over_file(tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text("port = 1\nquota_free = 7\n")
    assert settings(tmp_path).port == 1
    assert settings(tmp_path, ROOST_PORT="2").port == 2
    found = load_settings({"ROOST_DATA": str(tmp_path), "ROOST_PORT": "2"}, port=3)
    assert (found.port, found.quota_free) == (3, 7)


def test_a_secret_can_come_from_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "kek.hex"
    secret.write_text("ab" * 32 + "\n")
    found = settings(tmp_path, ROOST_KEK_FILE=str(secret))
    assert found.kek is not None
    assert found.kek.reveal() == b"\xab" * 32
    assert "abab" not in repr(found)


def test_an_upstream_is_configured_by_its_address(tmp_path: Path) -> None:
    (upstream,) = settings(
        tmp_path,
        ROOST_MODEL_URL="https://models.example/v1/",
        ROOST_MODEL_KEY="sk-very-secret",
        ROOST_MODELS="big, small",
    ).upstreams
    assert (upstream.api, upstream.url, upstream.models) == ("openai", "https://models.example/v1", ("big", "small"))
    assert "sk-very" not in repr(upstream)


def test_an_embedding_model_is_configured_by_its_address(tmp_path: Path) -> None:
    assert settings(tmp_path).embedding is None
    key, url = tmp_path / "key", "https://models.example/v1/"
    key.write_text("sk-very-secret\n")
    found = settings(
        tmp_path, ROOST_EMBEDDING_URL=url, ROOST_EMBEDDING_MODEL="small", ROOST_EMBEDDING_KEY_FILE=str(key)
    ).embedding
    assert found is not None
    assert (found.url, found.model) == ("https://models.example/v1", "small")
    assert found.key is not None
    assert found.key.reveal() == "sk-very-secret"
    assert "sk-very" not in repr(found)


@pytest.mark.parametrize("given", [{"URL": "https://models.example/v1"}, {"MODEL": "small"}, {"KEY": "sk-very-secret"}])
def test_an_embedding_model_needs_address_and_id(tmp_path: Path, given: dict[str, str]) -> None:
    with pytest.raises(BadSettings, match=r"^embedding_\w+: needs embedding_") as bad:
        settings(tmp_path, **{f"ROOST_EMBEDDING_{name}": value for name, value in given.items()})
    assert "sk-very" not in str(bad.value)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("ROOST_PORT", "http", "port"),
        ("ROOST_PORT", "65536", "^port: must be less than or equal to 65535, got"),
        ("ROOST_PORT", "-1", "port"),
        ("ROOST_RATE_LIMIT", "0", "^rate_limit: must be a number of at least 1, or `none`, got '0'$"),
        ("ROOST_QUOTA_FREE", "many", "^quota_free: must be an integer of 0 or more, got 'many'$"),
        ("ROOST_LOG_LEVEL", "loud", "log_level"),
        ("ROOST_LOG_LEVEL", "loud", "must be 'debug', 'info', 'warning' or 'error', got 'loud'"),
        ("ROOST_AGENT_MEMORY", "2X", "agent_memory"),
        ("ROOST_AGENT_MEMORY", "M", "agent_memory"),
        ("ROOST_AGENT_MEMORY", "\u00b2G", "agent_memory"),
        ("ROOST_AGENT_MEMORY", "63M", "at least 64M"),
        ("ROOST_STORAGE_FREE", "0", "storage_free"),
        ("ROOST_STORAGE_PAID", "lots", "storage_paid"),
        ("ROOST_AGENT_PIDS", "\u0663\u0663", "agent_pids"),
        ("ROOST_DOMAIN", "exa mple", "domain"),
        ("ROOST_DOMAIN", "-x.example", "domain"),
        ("ROOST_DOMAIN", "http://x.example", "domain"),
        ("ROOST_DOMAIN", "x" * 64, "domain"),
        ("ROOST_DOMAIN", "1.2.3", "domain: must be a DNS name"),
        (
            "ROOST_DOMAIN",
            "203.0.113.7",
            "^domain: 203.0.113.7 is an IP address, .* Use 203-0-113-7.sslip.io, .*_PORTS=9000-",
        ),
        ("ROOST_DOMAIN", "[2001:db8::7]", "Use 2001-0db8-0000-0000-0000-0000-0000-0007.sslip.io, "),
        ("ROOST_DOMAIN", "127.0.0.1", "Use localhost, "),
        ("ROOST_AGENT_PORTS", "9000", "agent_ports: must be a range of at most 1000 ports, like 9000-9099"),
        ("ROOST_AGENT_PORTS", "9099-9000", "agent_ports"),
        ("ROOST_MODEL_SERVERS", "vllm=8000", "model_servers: must be `none`, or a list of ollama=PORT"),
        ("ROOST_MODEL_SERVERS", "ollama=70000", "model_servers"),
        ("ROOST_MODEL_SERVERS", "ollama=1,lmstudio=1", "model_servers: must have another port"),
        ("ROOST_AGENT_PORTS", "0-9", "agent_ports"),
        ("ROOST_AGENT_PORTS", "65000-65536", "agent_ports"),
        ("ROOST_AGENT_PORTS", "9000-10000", "agent_ports"),
        ("ROOST_AGENT_PORTS", "8600-8700", "agent_ports: must not contain the port of the server itself"),
        ("ROOST_AGENT_CPUS", "none", "agent_cpus"),
        ("ROOST_AGENT_CPUS", "nan", "agent_cpus"),
        ("ROOST_KEK", "short", "kek"),
        ("ROOST_KEK_FILE", "/nowhere/at/all", "ROOST_KEK_FILE"),
        ("ROOST_EGRESS_ALLOW", "10.0.0.1/8", "egress_allow"),
        ("ROOST_EGRESS_DENY_PORTS", "0", "egress_deny_ports: must be a list of ports between 1 and 65535, or `none`"),
        ("ROOST_EGRESS_DENY_PORTS", "25,smtp", "egress_deny_ports"),
        ("ROOST_EGRESS_DENY_HOSTS", "https://evil.example", "egress_deny_hosts: must be a list of host names"),
        ("ROOST_EGRESS_DENY_HOSTS", "evil.example:443", "egress_deny_hosts"),
        ("ROOST_EGRESS_ALLOW_HOSTS", "b\u00fccher.example", "egress_allow_hosts"),
        ("ROOST_EGRESS_ALLOW_HOSTS", "good.*", "egress_allow_hosts"),
        ("ROOST_EGRESS_DENY_HOSTS", "*evil.example", "egress_deny_hosts"),
        ("ROOST_TRUSTED_PROXIES", "proxy.example", "trusted_proxies"),
        ("ROOST_EGRESS_HOSTS", "git.example", "egress_hosts"),
        ("ROOST_EGRESS_HOSTS", "git.example=elsewhere.example", "egress_hosts"),
        ("ROOST_EGRESS_HOSTS", "git.example=10.1.2.300", "egress_hosts"),
        ("ROOST_EGRESS_HOSTS", "git.example=10.1.2.3:0", "egress_hosts"),
        ("ROOST_EGRESS_HOSTS", "git.example=fd00::7:443", "egress_hosts"),
        ("ROOST_EGRESS_HOSTS", "=10.1.2.3", "egress_hosts"),
        ("ROOST_MODEL_URL", "models.example", "model_url"),
        ("ROOST_PUBLIC_SCHEME", "gopher", "public_scheme"),
        ("ROOST_NETWORK", "dht", "'none', 'trustless' or 'kubo'"),
        ("ROOST_KUBO_API", "127.0.0.1:5001", "kubo_api"),
        ("ROOST_KUBO_AUTH", "token", "^kubo_auth: must be `bearer:TOKEN` or `basic:USER:PASSWORD`$"),
        ("ROOST_KUBO_AUTH", "basic:user", "kubo_auth"),
        ("ROOST_PAYMENT_ASSETS", "base", "^payment_assets: must be a list of eip155:CHAIN/0xTOKEN=NAME/VERSION"),
        ("ROOST_PAYMENT_ASSETS", f"eip155:137/{TOKEN}=USD Coin", "payment_assets"),
        ("ROOST_PAYMENT_ASSETS", f"eip155:0137/{TOKEN}=USD Coin/2", "payment_assets"),
        ("ROOST_PAYMENT_ASSETS", f"eip155:137/{TOKEN[:-1]}=USD Coin/2", "payment_assets"),
        ("ROOST_PAYMENT_ASSETS", f"Polygon@eip155:137/{TOKEN}=USD Coin/2", "payment_assets"),
        ("ROOST_PAYMENT_ASSETS", f"polygon/{TOKEN}=USD Coin/2", "payment_assets"),
    ],
)
def test_a_bad_value_is_refused_by_name(tmp_path: Path, variable: str, value: str, message: str) -> None:
    with pytest.raises(BadSettings, match=message):
        settings(tmp_path, **{variable: value})


def test_a_list_of_hosts_limits_agents_and_not_the_server(tmp_path: Path) -> None:
    core = build_core_services(
        settings(tmp_path, ROOST_EGRESS_ALLOW_HOSTS="good.example", ROOST_EGRESS_DENY_PORTS="25,80")
    )
    try:
        agents = agent_dialer(core).policy
        assert (agents.admits_host("files.good.example"), agents.admits_host("evil.example")) == (True, False)
        assert core.network.dialer.policy.admits_host("webhook.example")
        assert agents.deny_ports == {25, 80}
    finally:
        core.close()


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        *((text, "files.evil.example") for text in ("Evil.Example.", "*.evil.example", ".evil.example")),
        ("0xC0.2.7", "192.2.0.7"),
        ("2001:DB8::7", "2001:db8::7"),
        ("[2001:db8:0::7]", "2001:db8::7"),
    ],
)
def test_every_spelling_of_a_listed_host_counts(tmp_path: Path, text: str, asked: str) -> None:
    found = settings(tmp_path, ROOST_EGRESS_DENY_HOSTS=f"other.example, {text}")
    assert not EgressPolicy(deny_hosts=found.egress_deny_hosts).admits_host(asked)


@pytest.mark.parametrize(("text", "ports"), [("", {25}), ("none", set()), ("25, 465", {25, 465})])
def test_denied_ports_are_parsed(tmp_path: Path, text: str, ports: set[int]) -> None:
    assert settings(tmp_path, ROOST_EGRESS_DENY_PORTS=text).egress_deny_ports == ports
    assert settings(tmp_path).egress_allow_hosts == ()


def test_the_file_says_things_as_toml_does(tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text(
        'host = "0.0.0.0"\nallow_plain_http = true\nagent_cpus = 0.5\nmodels = ["big", "small"]\n'
        'model_url = "https://models.example"\negress_allow = ["10.0.0.0/8", "fd00::/8"]\nlog_level = "debug"\n'
    )
    found = settings(tmp_path)
    assert (found.host, found.agent_cpus, found.log_level) == ("0.0.0.0", 0.5, "debug")
    assert found.upstreams[0].models == ("big", "small")
    assert [str(network) for network in found.egress_allow] == ["10.0.0.0/8", "fd00::/8"]


@pytest.mark.parametrize(
    "text", ["prot = 1", "port = ", "[port]\nx = 1\n[other]", "port = {x = 1}", 'data = "/elsewhere"', "\udcff"]
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "roost.toml").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(BadSettings, match=r"roost\.toml|port"):
        settings(tmp_path)


def test_a_file_that_is_none_is_refused_and_none_is_fine(tmp_path: Path) -> None:
    (tmp_path / "roost.toml").mkdir()
    with pytest.raises(BadSettings, match=r"roost\.toml"):
        settings(tmp_path)
    assert settings(tmp_path / "new").port == 8642
    (tmp_path / "file").touch()
    assert settings(tmp_path / "file").port == 8642
    with pytest.raises(BadSettings, match="data"):
        app.ensure_data_folder(settings(tmp_path / "file"))


def test_the_data_folder_is_closed_to_other_users(tmp_path: Path) -> None:
    folder = app.ensure_data_folder(settings(tmp_path / "data"))
    for mode in (0o777, 0o755, 0o710):
        folder.chmod(mode)
        app.ensure_data_folder(settings(folder))
        assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o1777)  # shared on purpose, like /tmp
    app.ensure_data_folder(settings(folder))
    assert folder.stat().st_mode & 0o7777 == 0o1777


def test_names_that_lead_elsewhere(tmp_path: Path) -> None:
    text = "Git.Example.=10.1.2.3, api.example=127.0.0.1:8443, six.example=[fd00::7], both.example=[fd00::8]:444"
    found = settings(tmp_path, ROOST_EGRESS_HOSTS=text).egress_hosts
    assert found == {
        "git.example": (ip_address("10.1.2.3"), None),
        "api.example": (ip_address("127.0.0.1"), 8443),
        "six.example": (ip_address("fd00::7"), None),
        "both.example": (ip_address("fd00::8"), 444),
    }
    assert settings(tmp_path).egress_hosts == {}


def test_tokens_for_payments(tmp_path: Path) -> None:
    text = f"polygon@eip155:137/{TOKEN}=USD Coin/2, eip155:31337/{TOKEN.upper().replace('X', 'x')}=USD\u20ae0/1"
    first, second = settings(tmp_path, ROOST_PAYMENT_ASSETS=text).payment_assets
    assert first == PaymentAsset(PaymentNetwork(137, "polygon"), TOKEN, "USD Coin", "2")
    assert (second.network, second.name, second.version) == (PaymentNetwork(31337), "USD\u20ae0", "1")
    assert settings(tmp_path).payment_assets == ()


def test_a_secret_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    with pytest.raises(BadSettings, match="ROOST_MODEL_KEY_FILE"):
        settings(tmp_path, ROOST_MODEL_URL="https://x.example", ROOST_MODEL_KEY_FILE=str(tmp_path / "key"))


@pytest.mark.parametrize(
    ("text", "place"),
    [("", "blobs"), ("/mnt/disk/", "/mnt/disk/"), ("s3://bucket/prefix", "s3://bucket/prefix"), ("gs://b", "gs://b")],
)
def test_places_of_blobs(tmp_path: Path, text: str, place: str) -> None:
    assert settings(tmp_path, ROOST_BLOBS=text).blobs == place


def test_blobs_are_kept_in_what_we_know(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"blobs: must be a folder, or s3://"):
        settings(tmp_path, ROOST_BLOBS="ftp://server/path")
    with pytest.raises(BadSettings, match="not a valid object store URL"):
        app.create_blob_store(settings(tmp_path, ROOST_BLOBS="s3://"))


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("Agents.Example.COM.", "agents.example.com"),
        ("", "localhost"),
        ("203-0-113-7.sslip.io", "203-0-113-7.sslip.io"),
        ("203.0.113.7.nip.io", "203.0.113.7.nip.io"),
    ],
)
def test_domains_are_normalised(tmp_path: Path, text: str, domain: str) -> None:
    assert settings(tmp_path, ROOST_DOMAIN=text).domain == domain


@pytest.mark.parametrize(
    ("text", "domain"),
    [("192.0.2.7", "192.0.2.7"), ("2001:DB8:0::7", "[2001:db8::7]"), ("[2001:db8::7]", "[2001:db8::7]")],
)
def test_a_domain_can_be_an_address_if_agents_have_ports(tmp_path: Path, text: str, domain: str) -> None:
    found = settings(tmp_path, ROOST_DOMAIN=text, ROOST_AGENT_PORTS="9000-9099")
    assert (found.domain, found.agent_ports) == (domain, range(9000, 9100))


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    found = settings(tmp_path, ROOST_PORT="", ROOST_AGENT_MEMORY="", ROOST_LOG_LEVEL="", ROOST_KEK="")
    assert (found.port, found.agent_memory, found.log_level, found.kek) == (8642, 2 * 1024**3, None, None)


def test_a_public_address_without_tls_has_to_be_meant(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="without TLS"):
        settings(tmp_path, ROOST_HOST="0.0.0.0")
    assert settings(tmp_path, ROOST_HOST="0.0.0.0", ROOST_ALLOW_PLAIN_HTTP="true").host == "0.0.0.0"
    assert settings(tmp_path, ROOST_HOST="0.0.0.0", ROOST_PUBLIC_SCHEME="https").public_scheme == "https"


@pytest.mark.parametrize(
    ("text", "size"), [("67108864", 64 * 1024**2), ("65536K", 64 * 1024**2), ("300M", 300 * 1024**2), ("1g", 1024**3)]
)
def test_sizes_are_parsed(tmp_path: Path, text: str, size: int) -> None:
    assert settings(tmp_path, ROOST_AGENT_MEMORY=text).agent_memory == size


@pytest.mark.parametrize(("text", "size"), [("", None), ("none", None), ("None", None), ("2G", 2 * 1024**3)])
def test_storage_limits_of_plans_are_parsed(tmp_path: Path, text: str, size: int | None) -> None:
    found = settings(tmp_path, ROOST_STORAGE_FREE=text, ROOST_STORAGE_PAID=text)
    assert (found.storage_free, found.storage_paid) == (size if text else 10 * 1024**3, size)


def test_tls_decides_scheme_and_port(tmp_path: Path) -> None:
    own = {"ROOST_TLS": "true", "ROOST_DOMAIN": "example.com"}
    assert (settings(tmp_path).public_scheme, settings(tmp_path).public_port) == ("http", 8642)
    found = settings(tmp_path, **own)
    assert (found.public_scheme, found.public_port) == ("https", 443)
    assert settings(tmp_path, **own, ROOST_TLS_PORT="8443").public_port == 8443
    assert settings(tmp_path, **own, ROOST_TLS_PORT="8443", ROOST_PUBLIC_PORT="443").public_port == 443
    files = {"ROOST_TLS_CERTIFICATE": "a.pem", "ROOST_TLS_KEY": "b.pem"}
    assert settings(tmp_path, ROOST_TLS="true", **files).domain == "localhost"


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({}, "^domain: no authority certifies localhost"),
        ({"ROOST_DOMAIN": "example.com", "ROOST_HOST": "0.0.0.0"}, "^host: must be a loopback address with tls"),
        ({"ROOST_DOMAIN": "example.com", "ROOST_PUBLIC_SCHEME": "http"}, "^public_scheme: must be https"),
        ({"ROOST_TLS_KEY": "key.pem"}, "^tls_certificate: needs tls_key"),
        ({"ROOST_ACME_URL": "x"}, "^acme_url: must be an http"),
    ],
)
def test_tls_that_cannot_work_is_refused(tmp_path: Path, own: dict[str, str], message: str) -> None:
    with pytest.raises(BadSettings, match=message):
        settings(tmp_path, ROOST_TLS="true", **own)


@pytest.mark.parametrize(
    ("variable", "suggestion"),
    [
        ("ROOST_PROT", "ROOST_PORT"),
        ("ROOST_DATABASE", "ROOST_DATABASE_URL"),
        ("ROOST_KEKFILE", "ROOST_KEK_FILE"),
        ("ROOST_XQZ", "settings.md"),
    ],
)
def test_an_unknown_variable_is_refused_with_the_nearest_name(tmp_path: Path, variable: str, suggestion: str) -> None:
    with pytest.raises(BadSettings, match=f"^{variable}: unknown variable; .*{suggestion}"):
        settings(tmp_path, **{variable: "1"})
    (tmp_path / "roost.toml").write_text("prot = 1")
    with pytest.raises(BadSettings, match="unknown setting 'prot'; did you mean port"):
        settings(tmp_path)


def test_variables_of_clients_and_of_other_programs_are_ignored(tmp_path: Path) -> None:
    assert settings(tmp_path, ROOST_URL="http://x", ROOST_TOKEN="t", PORT="1", XROOST_PORT="2").port == 8642


@pytest.mark.parametrize("name", ["KEK", "KEK_OLD", "KUBO_AUTH"])
def test_no_message_shows_a_secret(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadSettings) as refused:
        settings(tmp_path, **{f"ROOST_{name}": "hush"})
    assert "hush" not in str(refused.value)


def test_every_setting_is_documented() -> None:
    documented = (Path(__file__).parent.parent / "docs" / "reference" / "settings.md").read_text()
    for name, field in Settings.model_fields.items():
        default = field.default if isinstance(field.default, str) and field.default else "-"
        assert f"| `{name}` | `{variable_name(name)}` | {default} | {field.description} |" in documented
