"""Deliveries of a sender, the responses that count, and the URLs that it refuses."""

import asyncio
from ipaddress import ip_address, ip_network

import httpx2
import pytest

from roost.drivers.http_sender.contract import DeliveryFailed, HttpSender, UrlRefused
from roost.drivers.http_sender.guarded import GuardedHttpSender
from roost.net.dialer import PublicDialer
from roost.net.guarded_transport import GuardedTransport, check_url
from roost.net.policy import EgressPolicy
from tests.net.loopback import FakeResolver
from tests.support.receiver import receiving

OPEN = EgressPolicy(
    allow_private=[ip_network("127.0.0.0/8")], hosts={"inside.example": (ip_address("127.0.0.1"), None)}
)
HEADERS = {"Content-Type": "application/json", "webhook-id": "e1"}


def make_sender(policy: EgressPolicy = OPEN, names: FakeResolver | None = None, timeout: float = 5.0) -> HttpSender:
    dialer, trust = PublicDialer(policy, names or FakeResolver()), httpx2.create_ssl_context()
    return GuardedHttpSender(
        lambda tenant: GuardedTransport(dialer, tenant, trust), lambda url: check_url(policy, url), timeout=timeout
    )


async def deliver(sender: HttpSender, url: str) -> int:
    return await sender.deliver("t1", url, b'{"a":1}', HEADERS)


async def test_body_and_headers_are_delivered() -> None:
    async with receiving() as receiver:
        assert await deliver(make_sender(), receiver.url) == 200
    (message,) = receiver.messages
    assert (message.body, message.path) == (b'{"a":1}', "/hook")
    assert {name: message.headers[name.lower()] for name in HEADERS} == HEADERS
    assert message.headers["user-agent"] == "roost"


@pytest.mark.parametrize("status", [204, 400, 410, 500, 503])
async def test_the_status_is_returned(status: int) -> None:
    async with receiving(status) as receiver:
        assert await deliver(make_sender(), receiver.url) == status


async def test_redirects_are_not_followed() -> None:
    async with receiving() as elsewhere, receiving(307) as receiver:
        receiver.more = f"Location: {elsewhere.url}\r\n"
        assert await deliver(make_sender(), receiver.url) == 307
        assert elsewhere.messages == []


@pytest.mark.parametrize("manner", ["endless", "stalls", "breaks"])
async def test_the_body_of_a_response_is_ignored(manner: str) -> None:
    async with receiving(200) as receiver:
        if manner == "endless":
            receiver.endless = True
        else:
            receiver.more, receiver.tail = "Content-Length: 1000000\r\n", b"x"
            receiver.hold = manner == "stalls"
        async with asyncio.timeout(20):
            assert await deliver(make_sender(timeout=600), receiver.url) == 200


async def test_a_receiver_that_does_not_answer() -> None:
    async with receiving(None) as receiver:
        with pytest.raises(DeliveryFailed, match=r"within 0\.2 s"):
            await deliver(make_sender(timeout=0.2), receiver.url)


async def test_a_receiver_with_another_protocol() -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-x\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(DeliveryFailed, match="The receiver did not answer"):
            await deliver(make_sender(), f"http://127.0.0.1:{port}/")


async def test_an_unreachable_receiver() -> None:
    async with receiving() as receiver:
        url = receiver.url
    with pytest.raises(DeliveryFailed, match="could not be reached"):
        await deliver(make_sender(), url)
    with pytest.raises(DeliveryFailed, match=r"nowhere\.example could not be resolved"):
        await deliver(make_sender(), "https://nowhere.example/")


@pytest.mark.parametrize("answers", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "8.8.8.8 127.0.0.1", "::1", "fd00::1"])
async def test_names_with_private_addresses_are_refused_at_delivery(answers: str) -> None:
    names = FakeResolver({"rebound.example": answers.split()})
    async with receiving() as receiver:
        sender = make_sender(EgressPolicy(), names)
        url = f"https://rebound.example:{receiver.port}/"
        sender.check(url)
        with pytest.raises(DeliveryFailed, match="not on the public internet") as refused:
            await deliver(sender, url)
    assert receiver.messages == []
    assert "127.0.0.1" not in str(refused.value)
    assert names.subjects == ["t1"]


async def test_the_policy_is_checked_again_at_delivery() -> None:
    async with receiving() as receiver:
        make_sender().check(receiver.url)
        with pytest.raises(DeliveryFailed):
            await deliver(make_sender(EgressPolicy()), receiver.url)
    assert receiver.messages == []


async def test_a_host_of_the_operators_policy() -> None:
    async with receiving() as receiver:
        assert await deliver(make_sender(), f"http://inside.example:{receiver.port}/") == 200
    assert receiver.messages[0].headers["host"] == f"inside.example:{receiver.port}"


@pytest.mark.parametrize(
    "url",
    [
        *("", "receiver.example", "ftp://receiver.example/", "http://receiver.example/", "https://", "https:///x"),
        *("https://receiver.example:0/", "https://receiver.example:99999/", "https://receiver.example:25/"),
        *("https://user:pass@receiver.example/", "https://user@receiver.example/", "https://receiver.example/#x"),
        *("https://127.0.0.1/", "https://127.1/", "https://2130706433/", "https://0x7f000001/", "https://[::1]/"),
        *("https://10.0.0.1/", "https://169.254.169.254/", "https://[::ffff:10.0.0.1]/", "https://0/"),
        *("https://bad.example/", "https://sub.bad.example/", "https://BAD.example./"),
        *("https://receiver.example/a b", "https://receiver.example/\r\nX: y", "https://receiver.example/\0"),
        *("https://grün.example/", "https://receiver.example/" + "x" * 2048),
    ],
)
def test_refused_urls_are_named(url: str) -> None:
    with pytest.raises(UrlRefused):
        make_sender(EgressPolicy(deny_hosts=["bad.example"])).check(url)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "https://receiver.example/",
            "https://receiver.example:8443/a?b=c",
            "https://8.8.8.8/",
            "https://RECEIVER.example./",
        ),
        *("http://127.0.0.1:8080/", "http://inside.example/", "http://inside.example:8080/x", "https://127.0.0.1/"),
    ],
)
def test_allowed_urls_pass_the_check(url: str) -> None:
    make_sender().check(url)
