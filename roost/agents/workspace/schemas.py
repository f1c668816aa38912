"""Requests and responses of console and files (contract: Console exec, File upload)."""

from typing import Annotated

from pydantic import Field

from roost.agents.workspace.model import EXEC_TIMEOUT_LIMIT
from roost.web.schemas import ApiSchema, Moment


class ExecRequest(ApiSchema):
    command: str = ""
    cwd: str | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=EXEC_TIMEOUT_LIMIT)] | None = None


class ExecResponse(ApiSchema):
    stdout: str
    stderr: str
    exit_code: int
    command: str
    timestamp: Moment
    truncated: bool = False
    timed_out: bool = False


class UploadRequest(ApiSchema):
    filename: str = ""
    content_base64: str


class UploadResponse(ApiSchema):
    path: str
    filename: str
    size: int
