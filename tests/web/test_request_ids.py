import uuid

import pytest

from roost.web.access_log import request_id


@pytest.mark.parametrize("sent", ["a", "req-1_2.3", "A" * 64, "3f1c2a9e-5b7d-4c21-9f0a-6d8e2b4c7a10"])
def test_a_sane_id_is_kept(sent: str) -> None:
    assert request_id(sent) == sent


@pytest.mark.parametrize(
    "sent",
    [None, "", "A" * 65, "a b", "a\n", "a\r\nX-Evil: 1", "\xff", "\x1b[31m", "\u0661", "a/b", "%s"],
)
def test_any_other_is_replaced(sent: str | None) -> None:
    first, second = request_id(sent), request_id(sent)
    assert uuid.UUID(first) != uuid.UUID(second)
