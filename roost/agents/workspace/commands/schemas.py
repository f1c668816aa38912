"""Requests and responses of commands (contract: Console exec)."""

from typing import Annotated

from pydantic import Field, StrictFloat

from roost.agents.workspace.commands.model import EXEC_TIMEOUT_LIMIT
from roost.web.schemas import ApiSchema, Moment

_TIMEOUT = Field(gt=0, le=EXEC_TIMEOUT_LIMIT)


class ExecRequest(ApiSchema):
    command: Annotated[str, Field(json_schema_extra={"minLength": 1})]
    cwd: str | None = None
    timeout_seconds: Annotated[StrictFloat, _TIMEOUT] | None = None


class CommandQuery(ExecRequest):
    """Parameters of a streamed command; without `stdin` its input is empty."""

    timeout_seconds: Annotated[float, _TIMEOUT] | None = None  # a URL has no numbers
    stdin: bool = False


class ExecResponse(ApiSchema):
    stdout: str
    stderr: str
    exit_code: int
    command: str
    timestamp: Moment
    truncated: bool = False
    timed_out: bool = False


class CommandEnd(ApiSchema):
    """The last message of a streamed command; exit code 124 means that it timed out."""

    exit_code: int
    timed_out: bool
