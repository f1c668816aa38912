"""Errors of certificates and proxies are recognised in what programs say."""

import ssl

import pytest

from roost.core.machine.network_advice import advise_network, describe_certificate_error


@pytest.mark.parametrize(
    "output",
    [
        "npm error code SELF_SIGNED_CERT_IN_CHAIN",
        "npm error code UNABLE_TO_VERIFY_LEAF_SIGNATURE | npm error reason: unable to verify the first certificate",
        "Retrying after connection broken by 'SSLError([SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed",
        "The model provider is not available (openai): self-signed certificate in certificate chain",
    ],
)
def test_an_unknown_authority(output: str) -> None:
    for name in ("PIP_CERT", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "ca_file"):
        assert name in advise_network(output)


@pytest.mark.parametrize(
    "output",
    [
        "npm error code ECONNREFUSED",
        "npm error code ENOTFOUND | npm error syscall getaddrinfo",
        "WARNING: Retrying after connection broken by 'ProxyError('Cannot connect to proxy.', NewConnectionError())'",
        "The model provider is not available (openai): ConnectError",
    ],
)
def test_no_way_out(output: str) -> None:
    for name in ("HTTPS_PROXY", "PIP_INDEX_URL", "npm_config_registry"):
        assert name in advise_network(output)


@pytest.mark.parametrize("output", ["", "npm error code E404", "No space left on device", "hash mismatch"])
def test_other_errors_give_no_advice(output: str) -> None:
    assert advise_network(output) == ""


def test_a_certificate_is_the_cause_of_an_error_or_not() -> None:
    cause = ssl.SSLCertVerificationError()
    cause.verify_message = "certificate has expired"
    error = ConnectionError("x")
    assert describe_certificate_error(error) == ""
    error.__context__ = OSError()
    error.__context__.__cause__ = cause
    assert describe_certificate_error(error) == "certificate has expired"
