"""Forms of clients, in pieces of any size, and hostile forms."""

from collections.abc import AsyncIterator, Sequence

import pytest

from roost.core.db import Database
from roost.core.problem import Problem
from roost.identity.caller import Plan
from roost.storage.files.model import File
from roost.storage.files.service import FileService
from roost.storage.files.uploads.model import (
    FILES_LIMIT,
    InvalidUpload,
    UploadRequestLimits,
    UploadTooLarge,
    parse_upload_metadata,
)
from roost.storage.files.uploads.service import UploadService
from roost.web.multipart import InvalidForm, receive_form
from tests.storage.storage_env import CONTENT, StorageEnv

TYPE = "multipart/form-data; boundary=edge"
END = b"--edge--\r\n"


def part(name: str, value: bytes, filename: str | None = None) -> bytes:
    head = f'--edge\r\nContent-Disposition: form-data; name="{name}"'
    head += f'; filename="{filename}"\r\nContent-Type: text/plain' if filename is not None else ""
    return head.encode() + b"\r\n\r\n" + value + b"\r\n"


@pytest.fixture
def uploads(env: StorageEnv, database: Database) -> UploadService:
    return UploadService(database, env.content, FileService(database), dict.fromkeys(Plan, 10_000_000))


async def send(env: StorageEnv, uploads: UploadService, body: bytes, piece: int = 65_536, kind: str = TYPE) -> File:
    async def stream() -> AsyncIterator[bytes]:
        for at in range(0, len(body), piece):
            yield body[at : at + piece]

    async with uploads.begin(UploadRequestLimits(env.tenant_id)) as upload:
        return await upload.finish(parse_upload_metadata(await receive_form(stream(), kind, upload, FILES_LIMIT)))


@pytest.mark.parametrize("piece", [1, 7, 1000])
async def test_a_form_in_pieces(env: StorageEnv, uploads: UploadService, piece: int) -> None:
    fields = part("network", b"public") + part("keyvalues", b'{"a":"1"}')
    file = await send(env, uploads, part("file", b"\r\n--edg\r\n", "a.txt") + fields + END + b"epilogue", piece)
    assert (file.size, file.metadata.name, file.network, file.metadata.keyvalues) == (9, "a.txt", "public", {"a": "1"})


async def test_the_version_may_come_after_the_file(env: StorageEnv, uploads: UploadService) -> None:
    files = part("file", CONTENT, "t/a") + part("file", b"", "t/b") + part("file", b"c", "t/c")
    before = await send(env, uploads, part("cid_version", b"v0") + files + END)
    after = await send(env, uploads, files + part("cid_version", b"v0") + END)
    assert before.cid.startswith("Qm")
    assert (after.cid, after.is_duplicate) == (before.cid, True)


def hostile() -> Sequence[bytes]:
    file = part("file", b"x", "a")
    return (
        *(b"", b"nonsense", END, file, file[:-3], part("name", b"x") + END, b"--edge\r\n\r\nx\r\n" + END),
        *(part("name", b"a") + part("name", b"b") + file + END, part("name", b"\xff") + file + END),
        *(part("name", b"x" * 70_000) + file + END, part("other", b"x", "a") + END),
        b"".join(part(f"f{number}", b"x" * 7_000) for number in range(10)) + file + END,
        b"--edge\r\nContent-Disposition: form-data; name=file; filename=" + b"x" * 9000 + b"\r\n\r\nx\r\n" + END,
        b"".join(part(f"f{number}", b"") for number in range(40)) + file + END,
        *(b"x" * 2_000_000 + file + END, file + END + b"x" * 2_000_000),
        *(part("file", b"x", name) + END for name in ("../a", "a/../b", "/a", "a//b", "a/", ".", "a\x00b", "x" * 256)),
        *(part("file", b"x", name) + END for name in ("a\\\\..\\\\b", "/".join("a" * 40), "a\x1b[0m")),
    )


async def test_hostile_forms_leave_no_trace(env: StorageEnv, uploads: UploadService) -> None:
    for number, body in enumerate(hostile()):
        with pytest.raises(Problem) as caught:
            await send(env, uploads, body)
        assert isinstance(caught.value, InvalidForm | InvalidUpload), number
    assert [path for path in (env.folder / "blobs").rglob("*") if path.is_file()] == []


async def test_malformed_content_types_are_refused(env: StorageEnv, uploads: UploadService) -> None:
    long = "multipart/form-data; boundary=" + "x" * 300
    for kind in ("", "application/json", "multipart/form-data", long):
        with pytest.raises(InvalidForm):
            await send(env, uploads, part("file", b"x", "a") + END, kind=kind)


async def test_upload_over_the_limit_is_refused(env: StorageEnv, uploads: UploadService) -> None:
    with pytest.raises(UploadTooLarge):
        await send(env, uploads, part("file", bytes(10_000_001), "a") + END)
