import asyncio
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_address

import pytest

from roost.net.addresses import Address
from roost.net.dialer import PublicDialer, is_own_address
from roost.net.errors import (
    AddressRefused,
    ConnectTimeout,
    EgressProblem,
    HostRefused,
    HostUnreachable,
    NameNotResolved,
    PortRefused,
)
from roost.net.host_port import parse_host_port
from roost.net.policy import EgressPolicy
from tests.net.loopback import OPEN, FakeResolver, serving


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hi")
    writer.close()


async def dialled(dialer: PublicDialer, authority: str) -> bytes:
    reader, writer = await dialer.dial("a1", parse_host_port(authority))
    try:
        return await reader.read()
    finally:
        writer.transport.abort()


@contextmanager
def silent(host: str, port: int = 0) -> Iterator[int]:
    """Return a port that drops connections, because its backlog is full."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind((host, port))
        listener.listen(0)
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


@asynccontextmanager
async def watched() -> AsyncIterator[tuple[int, list[int]]]:
    """A server that counts who came."""
    came: list[int] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(1)
        writer.close()

    async with serving(note) as port:
        yield port, came


@pytest.mark.parametrize(
    "answers",
    [
        ["127.0.0.1"],
        ["8.8.8.8", "127.0.0.1"],
        ["127.0.0.1", "8.8.8.8"],
        ["2606:4700::1111", "::ffff:127.0.0.1"],
        ["169.254.169.254"],
    ],
)
async def test_one_private_answer_refuses_the_name_and_nothing_is_sent(answers: Sequence[str]) -> None:
    async with watched() as (port, came):
        with pytest.raises(AddressRefused) as caught:
            await PublicDialer(EgressPolicy(), FakeResolver({"mixed.example": answers})).dial(
                "a1", parse_host_port(f"mixed.example:{port}")
            )
        assert not came
    assert "mixed.example" in caught.value.message
    assert not any(answer in caught.value.message for answer in answers)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "0x7f000001", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "0"])
async def test_a_literal_is_judged_without_asking_anybody(host: str) -> None:
    names = FakeResolver()
    async with watched() as (port, came):
        with pytest.raises(AddressRefused):
            await PublicDialer(EgressPolicy(), names).dial("a1", parse_host_port(f"{host}:{port}"))
        assert not came
    assert not names.asked


async def test_the_name_is_asked_for_once_and_the_answer_is_what_is_connected_to() -> None:
    class Rebinding(FakeResolver):
        async def resolve(self, subject: str, host: str) -> Sequence[Address]:
            answers = await super().resolve(subject, host)
            self.names[host] = ["127.0.0.66"]  # where nobody listens
            return answers

    names = Rebinding({"x.example": ["127.0.0.1"]})
    async with serving(greet) as port:
        assert await dialled(PublicDialer(OPEN, names), f"x.example:{port}") == b"hi"
    assert names.asked == ["x.example"]


async def test_a_name_of_the_system_that_leads_to_loopback_cannot_be_pinned_elsewhere() -> None:
    """`localhost` would connect if the dialer handed the name on; its only answer here is refused."""
    async with watched() as (port, came):
        with pytest.raises(HostUnreachable):
            await PublicDialer(OPEN, FakeResolver({"localhost": ["127.0.0.66"]})).dial(
                "a1", parse_host_port(f"localhost:{port}")
            )
        assert not came


async def test_the_next_address_is_tried_when_one_refuses() -> None:
    async with serving(greet) as port:
        dialer = PublicDialer(OPEN, FakeResolver({"x.example": ["127.0.0.66", "::1", "127.0.0.1"]}))
        assert await dialled(dialer, f"x.example:{port}") == b"hi"


async def test_the_next_address_is_tried_beside_one_that_is_silent() -> None:
    async with serving(greet) as port:
        with silent("127.0.0.2", port):
            dialer = PublicDialer(OPEN, FakeResolver({"x.example": ["127.0.0.2", "127.0.0.1"]}))
            assert await dialled(dialer, f"x.example:{port}") == b"hi"


async def test_a_silent_address_is_given_up_on() -> None:
    with silent("127.0.0.2") as port, pytest.raises(ConnectTimeout):
        await PublicDialer(OPEN, FakeResolver(), timeout=0.3).dial("a1", parse_host_port(f"127.0.0.2:{port}"))


async def test_nobody_listens_and_nobody_is_known() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # taken, and not listening
        with pytest.raises(HostUnreachable):
            await PublicDialer(OPEN, FakeResolver()).dial("a1", parse_host_port(f"127.0.0.1:{free.getsockname()[1]}"))
    with pytest.raises(NameNotResolved):
        await PublicDialer(OPEN, FakeResolver()).dial("a1", parse_host_port("nobody.example:80"))
    with pytest.raises(HostUnreachable):
        await PublicDialer(OPEN, FakeResolver({"empty.example": []})).dial("a1", parse_host_port("empty.example:80"))


@pytest.mark.parametrize(
    ("policy", "authority", "problem"),
    [
        (EgressPolicy(deny_hosts=["evil.example"]), "a.evil.example:443", HostRefused),
        (EgressPolicy(allow_hosts=["good.example"]), "evil.example:443", HostRefused),
        (EgressPolicy(), "mail.example:25", PortRefused),
    ],
)
async def test_the_policy_is_asked_before_any_name_server(
    policy: EgressPolicy, authority: str, problem: type[EgressProblem]
) -> None:
    names = FakeResolver()
    with pytest.raises(problem):
        await PublicDialer(policy, names).dial("a1", parse_host_port(authority))
    assert not names.asked


async def test_the_public_address_of_this_machine_is_refused_unless_opened() -> None:
    def own(address: Address) -> bool:
        return str(address) == "8.8.4.4"

    names = FakeResolver({"us.example": ["8.8.4.4"]})
    with pytest.raises(AddressRefused):
        await PublicDialer(EgressPolicy(), names, is_own=own).dial("a1", parse_host_port("us.example:80"))
    async with serving(greet) as port:
        opened = PublicDialer(OPEN, FakeResolver({"us.example": ["127.0.0.1"]}), is_own=lambda _: True)
        assert await dialled(opened, f"us.example:{port}") == b"hi"


def test_own_addresses_are_recognised() -> None:
    assert is_own_address(ip_address("127.0.0.1"))
    assert not is_own_address(ip_address("8.8.8.8"))
    assert not is_own_address(ip_address("2606:4700::1111"))


async def test_of_very_many_answers_all_are_judged_and_a_few_are_tried() -> None:
    many = [f"127.0.1.{n}" for n in range(1, 250)]
    asked: list[Address] = []

    def own(address: Address) -> bool:
        asked.append(address)
        return False

    with pytest.raises(AddressRefused):
        await PublicDialer(OPEN, FakeResolver({"many.example": [*many, "10.0.0.1"]}), is_own=own).dial(
            "a1", parse_host_port("many.example:9")
        )
    assert not asked
    with pytest.raises(HostUnreachable):
        await PublicDialer(OPEN, FakeResolver({"many.example": many}), is_own=own).dial(
            "a1", parse_host_port("many.example:9")
        )
    assert len(asked) == 8


async def test_a_name_that_the_operator_placed_is_not_asked_for() -> None:
    names = FakeResolver({"api.example": ["8.8.8.8"]})
    async with serving(greet) as port:
        placed = EgressPolicy(allow_private=OPEN.allow_private, hosts={"api.example": (ip_address("127.0.0.1"), port)})
        assert await dialled(PublicDialer(placed, names), "api.example:443") == b"hi"
        assert await dialled(PublicDialer(placed, names), "API.Example.:80") == b"hi"
        same = EgressPolicy(allow_private=OPEN.allow_private, hosts={"api.example": (ip_address("127.0.0.1"), None)})
        assert await dialled(PublicDialer(same, names), f"api.example:{port}") == b"hi"
    assert not names.asked


async def test_a_place_covers_its_name_alone() -> None:
    names = FakeResolver({"below.api.example": ["127.0.0.66"]})
    async with watched() as (port, came):
        placed = EgressPolicy(allow_private=OPEN.allow_private, hosts={"api.example": (ip_address("127.0.0.1"), port)})
        with pytest.raises(HostUnreachable):
            await PublicDialer(placed, names).dial("a1", parse_host_port(f"below.api.example:{port}"))
        with pytest.raises(NameNotResolved):
            await PublicDialer(placed, names).dial("a1", parse_host_port(f"xapi.example:{port}"))
        assert not came
    assert names.asked == ["below.api.example", "xapi.example"]


async def test_a_place_opens_nothing_by_itself() -> None:
    async with watched() as (port, came):
        place = {"api.example": (ip_address("127.0.0.1"), port)}
        with pytest.raises(AddressRefused):
            await PublicDialer(EgressPolicy(hosts=place), FakeResolver()).dial("a1", parse_host_port("api.example:443"))
        opened = EgressPolicy(allow_private=OPEN.allow_private, hosts=place, deny_hosts=["example"])
        with pytest.raises(HostRefused):
            await PublicDialer(opened, FakeResolver()).dial("a1", parse_host_port("api.example:443"))
        with pytest.raises(PortRefused):
            await PublicDialer(EgressPolicy(allow_private=OPEN.allow_private, hosts=place), FakeResolver()).dial(
                "a1", parse_host_port("api.example:25")
            )
        assert not came
