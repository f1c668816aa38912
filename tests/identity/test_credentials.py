"""Headers that turn a token into the cookie of an agent's address; `test_authenticator.py` finds credentials."""

import pytest

from roost.identity.credentials import CredentialSource, find_credential, sign_in_headers


@pytest.mark.parametrize(("origin", "secure"), [("http://a1.example:8642", ""), ("https://a1.example", "; Secure")])
def test_the_cookie_of_a_sign_in(origin: str, secure: str) -> None:
    headers = sign_in_headers("rst_gw_1", origin, "/p?a=1")
    assert headers == {
        "location": f"{origin}/p?a=1",
        "set-cookie": f"gw_token=rst_gw_1; Path=/; HttpOnly; SameSite=Lax{secure}",
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
    }
    found = find_credential({"cookie": headers["set-cookie"].partition(";")[0]}, "")
    assert found is not None
    assert (found.token, found.source) == ("rst_gw_1", CredentialSource.COOKIE)


def test_no_token_adds_attributes_to_the_cookie() -> None:
    assert "gw_token=x%3B%20Domain%3Dexample;" in sign_in_headers("x; Domain=example", "http://a", "/")["set-cookie"]
