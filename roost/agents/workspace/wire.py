"""Shapes of console and files (contract: Console exec, File upload)."""

from typing import Annotated

from pydantic import Field

from roost.agents.workspace.model import EXEC_TIMEOUT_LIMIT, Ran, Uploaded
from roost.web.wire import Moment, Wire


class Exec(Wire):
    command: str = ""
    cwd: str | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=EXEC_TIMEOUT_LIMIT)] | None = None


class ExecResult(Wire):
    stdout: str
    stderr: str
    exit_code: int
    command: str
    timestamp: Moment
    truncated: bool = False
    timed_out: bool = False


class Upload(Wire):
    filename: str = ""
    content_base64: str


class UploadResult(Wire):
    path: str
    filename: str
    size: int


def ran(result: Ran) -> ExecResult:
    return ExecResult(**vars(result))


def uploaded(result: Uploaded) -> UploadResult:
    return UploadResult(**vars(result))
