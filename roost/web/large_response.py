"""Responses with lists: a long one is built and encoded in a thread, because both take tens of milliseconds."""

import threading
from collections.abc import Callable, Sized

from fastapi import Response
from pydantic import BaseModel

from roost.core.machine.daemon_thread import run_in_daemon_thread

_SHORT_LIST = 50
"""Items that the event loop encodes itself, faster than a thread would start."""
_encoding = threading.Lock()
"""Held while a long list is encoded: of several such threads, each makes the event loop wait for the interpreter."""


async def render_list(items: Sized, build: Callable[[], BaseModel]) -> Response:
    """Return the JSON of the model that `build` makes of `items`, as the framework would encode it."""

    def encode() -> str:
        return build().model_dump_json(by_alias=True)

    def encode_alone() -> str:
        with _encoding:
            return encode()

    body = encode() if len(items) <= _SHORT_LIST else await run_in_daemon_thread(encode_alone)
    return Response(body, media_type="application/json")
