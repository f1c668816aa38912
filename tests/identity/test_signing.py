"""Claims of a token count only with its signature, its audience and its times."""

from typing import Any

import jwt
import pytest

from roost.core import clock
from roost.identity.errors import Unauthorised
from roost.identity.model import ISSUER
from roost.identity.signing import ALGORITHM, decode_claims, read_key_id

SECRET = b"s" * 32


def signed(secret: bytes = SECRET, **changes: float | str) -> str:
    """Return a token; `changes` with numbers are seconds from now."""
    now = clock.utc_now().timestamp()
    times = {"iat": now, "exp": now + 60}
    changed = {name: now + value if not isinstance(value, str) else value for name, value in changes.items()}
    claims: dict[str, Any] = {"iss": ISSUER, "aud": "api", **times, **changed}
    return jwt.encode(claims, secret, ALGORITHM, headers={"kid": "k1"})


def decode(token: str) -> Any:
    return decode_claims(token, SECRET, "api", ("iss", "aud", "iat", "exp"))


@pytest.mark.parametrize("changes", [{}, {"iat": 50}, {"nbf": 50}, {"iat": -1000}, {"exp": 5}])
def test_clocks_may_differ_by_a_minute(changes: dict[str, Any]) -> None:
    assert decode(signed(**changes))["aud"] == "api"


@pytest.mark.parametrize(
    "changes", [{"iat": 70}, {"nbf": 70}, {"exp": -2}, {"exp": -1000}, {"aud": "other"}, {"iss": "other"}]
)
def test_other_claims_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Unauthorised):
        decode(signed(**changes))


@pytest.mark.parametrize("token", ["", "x.y.z", signed(b"t" * 32)])
def test_another_signature_is_refused(token: str) -> None:
    with pytest.raises(Unauthorised):
        decode(token)


def test_the_key_is_named_by_the_header() -> None:
    assert read_key_id(signed()) == "k1"
    with pytest.raises(Unauthorised):
        read_key_id("garbage")
