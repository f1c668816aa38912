import uuid

import pytest

from roost.web.request_id import request_id


@pytest.mark.parametrize("sent", [b"a", b"req-1_2.3", b"A" * 64, b"3f1c2a9e-5b7d-4c21-9f0a-6d8e2b4c7a10"])
def test_a_sane_id_is_kept(sent: bytes) -> None:
    assert request_id(sent) == sent.decode()


@pytest.mark.parametrize(
    "sent",
    [None, b"", b"A" * 65, b"a b", b"a\n", b"a\r\nX-Evil: 1", b"\xff", b"\x1b[31m", "\u0661".encode(), b"a/b", b"%s"],
)
def test_any_other_is_replaced(sent: bytes | None) -> None:
    first, second = request_id(sent), request_id(sent)
    assert uuid.UUID(first) != uuid.UUID(second)
