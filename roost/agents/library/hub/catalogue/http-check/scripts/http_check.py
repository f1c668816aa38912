"""Check web addresses."""

import argparse
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

BODY_LIMIT = 2_000_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("urls", nargs="+", metavar="url")
    parser.add_argument("--status", type=int, default=200)
    parser.add_argument("--contains", default="")
    parser.add_argument("--timeout", type=float, default=10.0)
    parser.add_argument("--days", type=int, default=14)
    options = parser.parse_args()
    failed = 0
    for url in options.urls:
        start = time.monotonic()
        try:
            line = check_url(url, options)
            word = "ok"
        except (OSError, ValueError) as error:
            line, word = str(error), "FAILED"
            failed += 1
        print(f"{word} {url} {(time.monotonic() - start) * 1000:.0f} ms: {line}")
    return 1 if failed else 0


def check_url(url: str, options: argparse.Namespace) -> str:
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("not an http or https address")
    request = urllib.request.Request(url, headers={"User-Agent": "http-check/1.0"})
    try:
        with urllib.request.urlopen(request, timeout=options.timeout) as response:
            status, final, body = response.status, response.url, response.read(BODY_LIMIT)
    except urllib.error.HTTPError as error:
        status, final, body = error.code, url, error.read(BODY_LIMIT)
    if status != options.status:
        raise ValueError(f"status {status}, expected {options.status}")
    if options.contains.encode() not in body:
        raise ValueError(f"status {status}, but without the text {options.contains!r}")
    parts = [f"status {status}", f"{len(body)} bytes"]
    if final != url:
        parts.append(f"redirected to {final}")
    if final.startswith("https:"):
        parts.append(check_certificate(final, options))
    return ", ".join(parts)


def check_certificate(url: str, options: argparse.Namespace) -> str:
    """Return the days until the certificate ends; a proxy that takes CONNECT only makes this part fail softly."""
    address = urlsplit(url)
    host = address.hostname or ""
    try:
        with socket.create_connection((host, address.port or 443), options.timeout) as plain:
            with ssl.create_default_context().wrap_socket(plain, server_hostname=host) as secure:
                certificate = secure.getpeercert() or {}
    except OSError:
        return "certificate not read"
    days = int((ssl.cert_time_to_seconds(str(certificate["notAfter"])) - time.time()) // 86400)
    if days < options.days:
        raise ValueError(f"the certificate ends in {days} days")
    return f"certificate ends in {days} days"


if __name__ == "__main__":
    sys.exit(main())
