"""Caddy's configuration as JSON. Pure.

Limits and times fit those of the edge (`roost/http/edge/dependencies.py`). Nothing limits the size or the time of a
body: the edge does.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from roost.core.sensitive import Sensitive
from roost.drivers.tls_proxy.contract import TlsListeners, TlsOptions

ADMIN_SOCKET = "admin.sock"
CERTIFICATES = "certificates"
_SECOND = 1_000_000_000  # Caddy counts in nanoseconds
_HEAD_SECONDS = 20  # for a handshake, too, in which a certificate may be issued
_HEAD_BYTES = 64 * 1024
_KEEP_ALIVE_SECONDS = 75
_CONTINUE_SECONDS = 10
_STREAM_SECONDS = 24 * 3600
_HSTS = "max-age=31536000"


@dataclass(frozen=True)
class CertificatePair:
    """A certificate with its chain, and its private key, both as PEM."""

    certificate: str
    key: Sensitive[str]


def render_configuration(
    options: TlsOptions, listeners: TlsListeners, pair: CertificatePair | None, dropped: Collection[str]
) -> Mapping[str, Any]:
    """Return the configuration; `dropped` are names whose handshakes are refused."""
    https, quic, http = listeners.descriptors()
    return {
        "admin": {"listen": f"unix/{ADMIN_SOCKET}|0600", "config": {"persist": False}},
        "logging": {"logs": {"default": {"encoder": {"format": "json"}, "level": "INFO"}}},
        "storage": {"module": "file_system", "root": CERTIFICATES},
        "apps": {
            "http": {
                "servers": {
                    "https": {
                        **_server(),
                        "listen": [f"fd/{https}", f"fdgram/{quic}"],
                        "listen_protocols": [["h1", "h2"], ["h3"]],
                        "tls_connection_policies": [*_drop_policy(dropped), {}],
                        "strict_sni_host": True,
                        "routes": _routes(options),
                        **_trusted_proxies(options),
                    },
                    "http": {
                        **_server(),
                        "listen": [f"fd/{http}"],
                        "protocols": ["h1"],
                        "routes": [_redirect(options.public_port)],
                    },
                }
            },
            "tls": {
                "automation": {
                    "policies": [{"on_demand": True, "issuers": [_issuer(options, listeners)]}],
                    "on_demand": {"permission": {"module": "http", "endpoint": options.permission_url}},
                },
                **_certificates(pair),
            },
        },
    }


def _server() -> Mapping[str, Any]:
    return {
        "automatic_https": {"disable": True},  # all of it is written here
        "read_header_timeout": _HEAD_SECONDS * _SECOND,
        "idle_timeout": _KEEP_ALIVE_SECONDS * _SECOND,
        "max_header_bytes": _HEAD_BYTES,
    }


def _drop_policy(dropped: Collection[str]) -> list[Mapping[str, Any]]:
    return [{"match": {"sni": sorted(dropped)}, "drop": True}] if dropped else []


def _trusted_proxies(options: TlsOptions) -> Mapping[str, Any]:
    if not options.trusted_proxies:
        return {}
    return {"trusted_proxies": {"source": "static", "ranges": [str(network) for network in options.trusted_proxies]}}


def _routes(options: TlsOptions) -> list[Mapping[str, Any]]:
    own = [options.domain, f"*.{options.domain}", f"*.*.{options.domain}", f"*.ipfs.*.gateways.{options.domain}"]
    return [
        {"match": [{"host": own}], "handle": [_headers(f"{_HSTS}; includeSubDomains", options.public_port)]},
        {"match": [{"not": [{"host": own}]}], "handle": [_headers(_HSTS, options.public_port)]},
        {"handle": [_reverse_proxy(options.backend)]},
    ]


def _headers(hsts: str, port: int) -> Mapping[str, Any]:
    fixed = {"Strict-Transport-Security": [hsts], "Alt-Svc": [f'h3=":{port}"; ma=2592000']}
    return {"handler": "headers", "response": {"deferred": True, "set": fixed, "delete": ["Server", "Via"]}}


def _reverse_proxy(backend: str) -> Mapping[str, Any]:
    """Return the handler.

    Without a `flush_interval` Caddy flushes streams at once, and ends the requests of clients that left. -1 would flush
    all responses at once, but let those requests continue.
    """
    return {
        "handler": "reverse_proxy",
        "upstreams": [{"dial": f"unix/{backend}"}],
        "transport": {
            "protocol": "http",
            "compression": False,
            "expect_continue_timeout": _CONTINUE_SECONDS * _SECOND,
            "keep_alive": {"idle_timeout": (_KEEP_ALIVE_SECONDS - 15) * _SECOND},
        },
        "stream_close_delay": _STREAM_SECONDS * _SECOND,  # WebSockets outlive a change of this configuration
    }


def _redirect(port: int) -> Mapping[str, Any]:
    suffix = "" if port == 443 else f":{port}"
    location = f"https://{{http.request.host}}{suffix}{{http.request.uri}}"
    return {"handle": [{"handler": "static_response", "status_code": 308, "headers": {"Location": [location]}}]}


def _issuer(options: TlsOptions, listeners: TlsListeners) -> Mapping[str, Any]:
    ports = {"http": {"alternate_port": options.http_port}, "tls-alpn": {"alternate_port": listeners.port}}
    return {
        "module": "acme",
        "ca": options.acme_url,
        "challenges": ports,
        **({"email": options.email} if options.email else {}),
        **({"trusted_roots_pem_files": [str(options.acme_ca)]} if options.acme_ca else {}),
    }


def _certificates(pair: CertificatePair | None) -> Mapping[str, Any]:
    if pair is None:
        return {}
    return {"certificates": {"load_pem": [{"certificate": pair.certificate, "key": pair.key.reveal()}]}}
