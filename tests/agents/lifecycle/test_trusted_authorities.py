"""What boxes are told to trust: exactly the system's authorities and the operator's, never a key."""

import ssl
from pathlib import Path

import pytest

from roost.agents.lifecycle import trusted_authorities
from roost.agents.lifecycle.model import TrustedAuthorities
from tests.platforms.tls import Authority

OURS = Authority("our company")
SYSTEMS = Authority("the system")


@pytest.fixture
def system(tmp_path: Path) -> Path:
    path = tmp_path / "system.pem"
    path.write_bytes(SYSTEMS.certificate.rstrip())  # without a newline at its end
    return path


def test_nothing_to_add_changes_nothing(tmp_path: Path, system: Path) -> None:
    assert trusted_authorities.establish(None, tmp_path / "trust", [system]) == TrustedAuthorities()
    assert not (tmp_path / "trust").exists()


def test_the_bundle_is_both_and_the_addition_is_alone(tmp_path: Path, system: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"# Our company\n" + OURS.key + OURS.certificate)
    made = trusted_authorities.establish(tmp_path / "ca.pem", tmp_path / "trust", [tmp_path / "none", system])
    (mount,) = made.mounts
    assert names(mount.source / _in_box(mount.target, made.env["SSL_CERT_FILE"])) == {"our company", "the system"}
    assert names(mount.source / _in_box(mount.target, made.env["NODE_EXTRA_CA_CERTS"])) == {"our company"}
    for written in mount.source.iterdir():
        assert b"KEY" not in written.read_bytes()
        assert written.stat().st_mode & 0o777 == 0o644


def test_a_changed_file_is_taken_over(tmp_path: Path, system: Path) -> None:
    file, folder = tmp_path / "ca.pem", tmp_path / "trust"
    for authority in (OURS, Authority("the next")):
        file.write_bytes(authority.certificate)
        trusted_authorities.establish(file, folder, [system])
    assert names(folder / "added.pem") == {"the next"}
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize(
    "content", [b"", b"no certificate", OURS.key, b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_what_is_no_certificate_is_refused_by_name(tmp_path: Path, system: Path, content: bytes) -> None:
    (tmp_path / "ca.pem").write_bytes(content)
    with pytest.raises(trusted_authorities.InvalidAuthorities, match=r"ca_file: .*ca\.pem") as caught:
        trusted_authorities.establish(tmp_path / "ca.pem", tmp_path / "trust", [system])
    assert "PRIVATE" not in caught.value.message


def test_a_missing_file_and_a_bare_system_are_refused(tmp_path: Path, system: Path) -> None:
    with pytest.raises(trusted_authorities.InvalidAuthorities, match="No such file"):
        trusted_authorities.establish(tmp_path / "none", tmp_path / "trust", [system])
    (tmp_path / "ca.pem").write_bytes(OURS.certificate)
    with pytest.raises(trusted_authorities.InvalidAuthorities, match="ca-certificates"):
        trusted_authorities.establish(tmp_path / "ca.pem", tmp_path / "trust", [tmp_path / "none"])


def names(bundle: Path) -> set[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(bundle)
    return {value for found in context.get_ca_certs() for ((_, value),) in found["subject"]}


def _in_box(target: str, path: str) -> str:
    assert path.startswith(f"{target}/")
    return path.removeprefix(f"{target}/")
