"""Request ids for the logs: the caller's own if it is valid, else a new one."""

import re

from roost.core import ids

_SANE = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def request_id(inbound: str | None) -> str:
    """Return `inbound`, the value of `X-Request-Id`, if it is valid, else a new id."""
    return inbound if inbound is not None and _SANE.fullmatch(inbound) else ids.new_id()
