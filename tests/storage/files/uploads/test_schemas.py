from datetime import UTC, datetime

from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.uploads import schemas

NOW = datetime(2026, 11, 21, tzinfo=UTC)
FILE = File("i", "t", ContentNetwork.PRIVATE, "c", 5, 3, "directory", FileMetadata("n"), NOW, NOW, is_duplicate=True)


def test_how_an_upload_is_told() -> None:
    assert schemas.UploadedFileRecord.from_file(FILE).model_dump(mode="json") == {
        "id": "i",
        "user_id": "t",
        "name": "n",
        "cid": "c",
        "size": 5,
        "number_of_files": 3,
        "mime_type": "directory",
        "keyvalues": {},
        "group_id": None,
        "network": "private",
        "vectorized": False,
        "created_at": "2026-11-21T00:00:00.000000Z",
        "expires_at": None,
        "is_duplicate": True,
    }
