"""Containers trust exactly the authorities of the system and the operator, and never see a key."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from roost.agents.lifecycle.workflows import trusted_authorities
from roost.agents.lifecycle.workflows.model import TrustedAuthorities
from tests.platforms.tls import Authority

OURS = Authority("our company")
SYSTEMS = Authority("the system")


@pytest.fixture
def system(tmp_path: Path) -> Path:
    path = tmp_path / "system.pem"
    path.write_bytes(SYSTEMS.certificate.rstrip())  # without a newline at its end
    return path


def test_without_a_file_nothing_changes(system: Path) -> None:
    assert trusted_authorities.load_authorities(None, [system]) == TrustedAuthorities()


def test_one_bundle_has_all_and_one_only_the_added_authorities(tmp_path: Path, system: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"# Our company\n" + OURS.key + OURS.certificate)
    loaded = trusted_authorities.load_authorities(tmp_path / "ca.pem", [tmp_path / "none", system])
    assert names(loaded.files[loaded.env["SSL_CERT_FILE"]]) == {"our company", "the system"}
    assert names(loaded.files[loaded.env["NODE_EXTRA_CA_CERTS"]]) == {"our company"}
    assert not any(b"KEY" in content for content in loaded.files.values())


@pytest.mark.parametrize(
    "content", [b"", b"no certificate", OURS.key, b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_files_without_certificates_are_rejected_by_name(tmp_path: Path, system: Path, content: bytes) -> None:
    (tmp_path / "ca.pem").write_bytes(content)
    with pytest.raises(trusted_authorities.InvalidAuthorities, match=r"ca_file: .*ca\.pem") as caught:
        trusted_authorities.load_authorities(tmp_path / "ca.pem", [system])
    assert "PRIVATE" not in caught.value.message


def test_a_missing_file_and_a_system_without_authorities_are_rejected(tmp_path: Path, system: Path) -> None:
    with pytest.raises(trusted_authorities.InvalidAuthorities, match="No such file"):
        trusted_authorities.load_authorities(tmp_path / "none", [system])
    (tmp_path / "ca.pem").write_bytes(OURS.certificate)
    with pytest.raises(trusted_authorities.InvalidAuthorities, match="ca-certificates"):
        trusted_authorities.load_authorities(tmp_path / "ca.pem", [tmp_path / "none"])


def names(bundle: bytes) -> set[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=bundle.decode())
    authorities: list[Any] = context.get_ca_certs()  # the stubs give `subject` the type of all fields
    return {value for found in authorities for ((_, value),) in found["subject"]}
