import base64

from roost.identity.authenticator import ANY_SCOPE
from roost.web.url_rule import HostKind
from tests.identity.test_authenticator import AuthEnv, auth_request, env

__all__ = ["env"]


async def test_only_a_credential_that_was_valid_is_known(env: AuthEnv) -> None:
    caller = await env.keys.verify(env.jwt["a"])
    issued = await env.keys.mint(caller, "pair", frozenset())
    pair = {"pinata_api_key": issued.handle, "pinata_secret_api_key": issued.secret.reveal()}
    basic = base64.b64encode(f"x:{env.token['agent-1']}".encode()).decode()
    ways = [
        auth_request(HostKind.STORAGE, headers=pair),
        auth_request(HostKind.AGENT, env.token["agent-1"]),
        auth_request(HostKind.AGENT, headers={"authorization": f"Basic {basic}"}),
        auth_request(HostKind.AGENT, headers={"cookie": f"gw_token={env.token['agent-1']}"}),
        auth_request(HostKind.AGENT, query=f"token={env.token['agent-1']}"),
    ]
    known = env.known_credentials.find
    assert {known(way) for way in ways} == {None}
    await env.authenticator.authenticate_storage(ways[0], ANY_SCOPE)
    await env.authenticator.authenticate_gateway_token(ways[1])
    digests = [known(way) for way in ways]
    assert None not in digests
    assert len(set(digests)) == 2  # however the same token is sent
    assert known(auth_request(HostKind.MANAGEMENT, env.jwt["a"])) not in {None, *digests}
    for unknown in ("rst_gw_guess", env.jwt["b"], ""):
        assert known(auth_request(HostKind.AGENT, unknown)) is None
    await env.gateways.rotate("agent-1")
    assert known(ways[1]) is None
