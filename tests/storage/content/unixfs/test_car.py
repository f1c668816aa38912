import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.content.unixfs import car, varint
from roost.storage.content.unixfs.car import CarReader
from roost.storage.content.unixfs.cid import DAG_PB, RAW, Cid
from roost.storage.content.unixfs.dagpb import BLOCK_LIMIT
from roost.storage.content.unixfs.errors import MalformedContent
from tests.storage.cars import encode_car

BLOCKS = [(Cid.for_block(RAW, data), data) for data in (b"", b"a", b"b" * 300, b"c" * 70_000)]
BLOCKS += [(Cid.for_block(DAG_PB, b"old", 0), b"old")]
ROOTS = [BLOCKS[0][0], BLOCKS[-1][0]]
CAR = encode_car(ROOTS, BLOCKS)


def read(data: bytes, step: int = 1 << 20) -> CarReader:
    reader = CarReader()
    for at in range(0, len(data), step):
        for found in reader.feed(data[at : at + step]):
            assert data[found.offset :].startswith(found.data)
            assert found.cid.matches(found.data)
    reader.finish()
    return reader


@pytest.mark.parametrize("step", [1, 7, 1000, 1 << 20])
def test_there_and_back(step: int) -> None:
    reader, found = CarReader(), []
    for at in range(0, len(CAR), step):
        found += [(one.cid, one.data) for one in reader.feed(CAR[at : at + step])]
    reader.finish()
    assert found == BLOCKS
    assert reader.roots == ROOTS


def test_a_known_header() -> None:
    """The header of one root, as in the specification."""
    root = Cid.parse("bafyreihyrpefhacm6kkp4ql6j6udakdit7g3dmkzfriqfykhjw6cad5lrm")
    wanted = (
        "3aa265726f6f747381d82a58250001711220f88bc853804cf294fe417e4fa83028689fcdb1b1592c5102e1474dbc200fab8b"
        "6776657273696f6e01"
    )
    assert car.encode_header([root]).hex() == wanted


@pytest.mark.parametrize("cut", range(1, 38))
def test_one_that_is_cut_off(cut: int) -> None:
    """Anywhere in its last block, which has 38 bytes with its CID."""
    with pytest.raises(MalformedContent):
        read(CAR[:-cut])


def test_a_block_that_is_not_what_it_says() -> None:
    with pytest.raises(MalformedContent, match="does not match its CID"):
        read(CAR[:-1] + b"!")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        varint.encode_varint(BLOCK_LIMIT * 2) + b"x",
        b"\xff" * 10,
        car.encode_header(ROOTS).replace(b"version\x01", b"version\x02"),
        car.encode_header(ROOTS).replace(b"roots", b"rootz"),
        car.encode_header(ROOTS) + b"\0",
        car.encode_header(ROOTS) + varint.encode_varint(BLOCK_LIMIT + 1000) + b"x" * 20,
    ],
)
def test_malformed_cars_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedContent):
        read(data)


def version_2(payload: bytes, gap: int = 0, index: bytes | None = None, **wrong: int) -> bytes:
    """Wrap a CAR of version 1, by the layout in the specification."""
    offset = 51 + gap
    numbers = {
        "offset": offset,
        "size": len(payload),
        "at": 0 if index is None else offset + len(payload) + gap,
        **wrong,
    }
    header = b"".join(numbers[name].to_bytes(8, "little") for name in ("offset", "size", "at"))
    tail = b"" if index is None else b"\0" * gap + index
    return bytes.fromhex("0aa16776657273696f6e02") + bytes(16) + header + b"\0" * gap + payload + tail


@pytest.mark.parametrize("step", [1, 7, 1000, 1 << 20])
@pytest.mark.parametrize(("gap", "index"), [(0, None), (0, b"\x80\x08index"), (100, b"\x81\x08" + bytes(5000))])
def test_version_2_is_version_1_between_its_offsets(step: int, gap: int, index: bytes | None) -> None:
    data, reader, found = version_2(CAR, gap, index), CarReader(), []
    for at in range(0, len(data), step):
        found += list(reader.feed(data[at : at + step]))
    reader.finish()
    assert reader.roots == ROOTS
    assert [(one.cid, one.data) for one in found] == BLOCKS
    assert all(data[one.offset :].startswith(one.data) for one in found)


@pytest.mark.parametrize(
    "data",
    [
        version_2(CAR)[:-1],
        version_2(CAR)[:51],
        version_2(CAR)[:30],
        version_2(CAR, size=0),
        version_2(CAR, size=len(CAR) - 1),
        version_2(CAR, size=len(CAR) + 1),
        version_2(CAR, size=2**64 - 1),
        version_2(CAR, offset=0),
        version_2(CAR, offset=50),
        version_2(CAR, offset=52),
        version_2(CAR, offset=2**64 - 1),
        version_2(CAR, at=60),
        version_2(CAR, at=51 + len(CAR)),
        version_2(CAR, at=2**64 - 1),
        version_2(version_2(CAR)),
        version_2(b""),
    ],
)
@pytest.mark.parametrize("step", [1, 1 << 20])
def test_version_2_with_wrong_offsets(data: bytes, step: int) -> None:
    with pytest.raises(MalformedContent):
        read(data, step)


def test_many_roots_are_read() -> None:
    roots = [Cid.for_block(RAW, str(number).encode()) for number in range(300)]
    assert read(car.encode_header(roots)).roots == roots


@given(st.integers(0, 400), st.binary(min_size=1, max_size=10))
def test_no_change_breaks_it(at: int, noise: bytes) -> None:
    try:
        read(CAR[:at] + noise + CAR[at + len(noise) :], step=97)
    except MalformedContent:
        return


CID = bytes(BLOCKS[1][0])
LINK = b"\xd8\x2a\x58\x25\x00" + CID


def framed(body: bytes) -> bytes:
    return varint.encode_varint(len(body)) + body


def head(roots: bytes, version: bytes = b"\x67version\x01") -> bytes:
    return framed(b"\xa2\x65roots" + roots + version)


@pytest.mark.parametrize("roots", [b"\x80", b"\x98\x00", b"\x81" + LINK, b"\x98\x01" + LINK, b"\x99\x00\x01" + LINK])
def test_heads_that_count_their_roots_in_any_width(roots: bytes) -> None:
    assert read(head(roots)).roots == ([BLOCKS[1][0]] if roots.endswith(LINK) else [])


@pytest.mark.parametrize(
    "data",
    [
        head(b"\x81"),  # fewer roots than declared
        head(b"\x80" + LINK),  # more
        head(b"\x82" + LINK),
        head(b"\x9a\xff\xff\xff\xff" + LINK),  # 4 * 10^9
        head(b"\x9b" + b"\0" * 7 + b"\x01" + LINK),  # wider than necessary
        head(b"\x9f" + LINK + b"\xff"),  # of indefinite length
        head(b"\xa0"),  # a map
        head(b"\x81" + LINK.replace(b"\xd8\x2a", b"\xd8\x2b")),  # with another tag
        head(b"\x81" + LINK.replace(b"\x58\x25\x00", b"\x58\x25\x01")),  # in another multibase
        head(b"\x81" + b"\xd8\x2a\x58\x24" + CID),  # in no multibase
        head(b"\x81" + b"\xd8\x2a\x58\x26\x00" + CID + b"\0"),  # with trailing bytes
        head(b"\x81" + b"\xd8\x2a\x40"),  # empty
        head(b"\x81" + b"\xd8\x2a\x59\xff\xff\x00" + CID),  # longer than the data
        head(b"\x81" + b"\xd8\x2a\x78\x25\x00" + CID),  # as a text
        head(b"\x80", b"\x67version\x02"),
        head(b"\x80", b"\x67version\x18\x01"),  # not in its shortest form
        head(b"\x80", b""),
        head(b"\x80", b"\x67version\x01\x00"),
        framed(b"\xa1\x67version\x01"),  # without roots
        framed(b"\xa2\x67version\x01\x65roots\x80"),  # in another order
        framed(b"\xa3\x65roots\x80\x67version\x01\x61x\x00"),
        framed(b"\x80"),
        framed(b"\xa2\x65roots"),
        framed(bytes.fromhex("0aa16776657273696f6e02")),  # the start of version 2
        framed(bytes(70_000)),
    ],
)
def test_heads_that_are_none(data: bytes) -> None:
    with pytest.raises(MalformedContent):
        read(data)


def test_a_block_of_the_largest_size_and_one_more() -> None:
    block = bytes(BLOCK_LIMIT)
    read(encode_car([], [(Cid.for_block(RAW, block), block)]), step=300_000)
    with pytest.raises(MalformedContent):
        read(head(b"\x80") + varint.encode_varint(BLOCK_LIMIT + 257) + bytes(300))


def test_no_more_is_held_than_one_block() -> None:
    """A larger declared length is refused before the block arrives."""
    reader = CarReader()
    list(reader.feed(car.encode_header(ROOTS)))
    with pytest.raises(MalformedContent):
        list(reader.feed(varint.encode_varint(1 << 40)))


def test_a_block_whose_content_is_in_its_name() -> None:
    tiny = Cid(1, RAW, 0, b"tiny")
    assert read(encode_car([tiny], [(tiny, b"tiny")])).roots == [tiny]
    with pytest.raises(MalformedContent, match="does not match its CID"):
        read(encode_car([tiny], [(tiny, b"tinY")]))


def test_a_hash_that_cannot_be_checked_is_named() -> None:
    unknown = Cid(1, RAW, 0x13, bytes(64))
    with pytest.raises(MalformedContent, match="hash function 0x13"):
        read(encode_car([unknown], [(unknown, b"any")]))


@given(st.lists(st.binary(max_size=200), max_size=5), st.integers(1, 50))
def test_any_blocks_there_and_back(blocks: list[bytes], step: int) -> None:
    named = [(Cid.for_block(RAW, block), block) for block in blocks]
    data = encode_car([cid for cid, _ in named], named)
    reader, found = CarReader(), []
    for at in range(0, len(data), step):
        found += [(one.cid, one.data) for one in reader.feed(data[at : at + step])]
    reader.finish()
    assert found == named
    assert reader.roots == [cid for cid, _ in named]
