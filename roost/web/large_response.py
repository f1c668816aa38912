"""Responses with many rows, built and encoded in a thread, because both take tens of milliseconds."""

from collections.abc import Callable

from fastapi import Response
from pydantic import BaseModel

from roost.core.daemon_thread import run_in_daemon_thread


async def render_in_thread(build: Callable[[], BaseModel]) -> Response:
    """Return the JSON of the model that `build` returns, as the framework would encode it."""
    body = await run_in_daemon_thread(lambda: build().model_dump_json(by_alias=True))
    return Response(body, media_type="application/json")
