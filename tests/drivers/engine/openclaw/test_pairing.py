"""OpenClaw's pairing requests, as its gateway lists them."""

from datetime import UTC, datetime

from roost.drivers.engine.abilities.channels import MAX_PAIRING_REQUESTS, NAME_LIMIT, PairingRequest
from roost.drivers.engine.openclaw.pairing import parse_requests


def test_requests_are_parsed_and_garbage_is_ignored() -> None:
    row = {
        "requestId": "r1",
        "channel": "telegram",
        "accountId": "default",
        "senderId": "4711",
        "metadata": {"username": "ada", "firstName": "Ada\x1b[31m", "lastName": "L" * 200},
        "createdAt": "2026-11-25T22:00:00.000Z",
    }
    bare = {"requestId": "r2", "channel": "slack", "senderId": "U1", "createdAt": "yesterday"}
    found = parse_requests({"requests": [row, bare, 7, {}, {"channel": "slack", "senderId": "U2"}]})
    at = datetime(2026, 11, 25, 22, tzinfo=UTC)
    assert found == {
        "telegram": (PairingRequest("4711", f"Ada {'L' * 200}"[:NAME_LIMIT], at, "r1"),),
        "slack": (PairingRequest("U1", None, None, "r2"),),
    }
    many = {"requests": [{**bare, "requestId": str(number)} for number in range(50)]}
    assert len(parse_requests(many)["slack"]) == MAX_PAIRING_REQUESTS
    for garbage in (None, [], {"requests": 7}):
        assert parse_requests(garbage) == {}
