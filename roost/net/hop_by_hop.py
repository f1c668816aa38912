"""Headers that belong to one connection and are never forwarded (RFC 9110 section 7.6.1)."""

HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"http2-settings",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
"""Lower-case names; the headers that `Connection` names come on top."""
