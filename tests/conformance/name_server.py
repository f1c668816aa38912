"""A name server on loopback for tests."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

import dns.message
import dns.name
import dns.rcode
import dns.rrset


class NameServer(asyncio.DatagramProtocol):
    """Authority of all names over UDP: `records` in zone-file form by name and type, NXDOMAIN for others."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], list[str]] = {}
        self.asked: list[str] = []
        self.rcode = dns.rcode.NOERROR
        self.port = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        answer = dns.message.make_response(query)
        name = query.question[0].name
        self.asked.append(str(name))
        kind = "TXT"
        if alias := self.records.get((str(name).lower(), "CNAME")):
            answer.answer.append(dns.rrset.from_text(name, 60, "IN", "CNAME", *alias))
            name = dns.name.from_text(alias[0])
        if found := self.records.get((str(name).lower(), kind)):
            answer.answer.append(dns.rrset.from_text(name, 60, "IN", kind, *found))
        elif not any(known == str(name).lower() for known, _ in self.records):
            answer.set_rcode(dns.rcode.NXDOMAIN)
        if self.rcode != dns.rcode.NOERROR:
            answer = dns.message.make_response(query)
            answer.set_rcode(self.rcode)
        self._transport.sendto(answer.to_wire(), addr)

    def set_texts(self, name: str, *texts: Sequence[str]) -> None:
        """Set the TXT records of a name, each in parts; none removes them."""
        self.records[f"{name}.", "TXT"] = [" ".join(f'"{part}"' for part in parts) for parts in texts]


@asynccontextmanager
async def serve_names() -> AsyncIterator[NameServer]:
    server = NameServer()
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: server, ("127.0.0.1", 0))
    server.port = transport.get_extra_info("sockname")[1]
    try:
        yield server
    finally:
        transport.close()
