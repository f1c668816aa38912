"""Packets of a hostile server are bounded and never misread."""

from collections.abc import AsyncIterator

import pytest

from roost.drivers.git.pkt_line import MalformedPacket, PacketMarker, PacketReader, encode_command, insert_remark
from roost.drivers.git.remote_contract import RemoteRefused


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_packets_and_markers_in_any_chunks() -> None:
    data = b"00080000" + b"0000" + b"0001" + b"0002" + b"0006a\n"
    for parts in ([data], [data[at : at + 1] for at in range(len(data))]):
        reader = PacketReader(chunks(*parts))
        found = [await reader.read() for _ in range(6)]
        assert found == [b"0000", *PacketMarker, b"a\n", None]


@pytest.mark.parametrize("data", [b"00", b"0003", b"0004", b"0x0a", b"+00a", b"zzzz", b"ffff", b"0009a", b"fff1"])
async def test_malformed_packets_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedPacket):
        await PacketReader(chunks(data)).read()


async def test_lines_end_at_a_marker_and_errors_are_refused() -> None:
    reader = PacketReader(chunks(b"0006a\n", b"0005b", b"0001", b"000bERR no\n"))
    assert [line async for line in reader.read_lines()] == [b"a", b"b"]
    with pytest.raises(RemoteRefused):
        assert [line async for line in reader.read_lines()]


def test_command_is_encoded_in_packets() -> None:
    assert encode_command("ls-refs", ["x"], ["peel"]) == b"0014command=ls-refs\n0006x\n00010009peel\n0000"


@pytest.mark.parametrize("size", range(1, 40))
@pytest.mark.parametrize(
    "before", [b"0014acknowledgments\n0008NAK\n0001000dpackfile\n", b"0008NAK\n", b"000dshallow x00000007ACK"]
)
async def test_a_remark_is_put_before_the_pack(before: bytes, size: int) -> None:
    response = before + b"0009\x01PACK0009\x02done0000"

    def split(content: bytes) -> AsyncIterator[bytes]:
        return chunks(*(content[at : at + size] for at in range(0, len(content), size)))

    found = b"".join([chunk async for chunk in insert_remark(split(response), "old")])
    assert found == before + b"0009\x02old\n" + response.removeprefix(before)
    for other in (b"003dname refs/heads/main\n0000", b"0008NAK\nPACK\0\0\0\x020009\x01PACK", b"00", before):
        assert b"".join([chunk async for chunk in insert_remark(split(other), "old")]) == other
