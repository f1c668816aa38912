import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.content.unixfs import dagpb, varint
from roost.storage.content.unixfs.cid import DAG_PB, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.errors import MalformedContent

MOST = 2**63 - 1
NUMBERS = st.integers(0, MOST)
CIDS = st.builds(Cid.for_block, st.sampled_from([RAW, DAG_PB]), st.binary(max_size=8))
LINKS = st.builds(PBLink, CIDS, st.text(st.characters(exclude_categories=["Cs"]), max_size=12), NUMBERS)
NOTES = st.builds(
    UnixfsData,
    st.sampled_from(UnixfsKind),
    st.binary(max_size=20),
    st.none() | NUMBERS,
    st.lists(NUMBERS, max_size=5),
    st.none() | NUMBERS,
    st.none() | NUMBERS,
    st.none() | NUMBERS,
)
DATA = bytes.fromhex("0a020801")  # a folder's UnixFS data, as a field of its node
A = PBLink(Cid.for_block(RAW, b"a"), "a", 1)
B = PBLink(Cid.for_block(DAG_PB, b"b", 0), "b", 1 << 40)


def test_there_and_back() -> None:
    unixfs = UnixfsData(UnixfsKind.FILE, b"data", 7, (1, 2), 0x22, 256)
    node = dagpb.decode_node(dagpb.encode_node([A, B], unixfs))
    assert list(node.links) == [A, B]
    assert node.unixfs == UnixfsData(UnixfsKind.FILE, b"data", 7, [1, 2], 0x22, 256)


@given(st.lists(LINKS, max_size=6), NOTES)
def test_whatever_is_written_is_read(links: list[PBLink], unixfs: UnixfsData) -> None:
    node = dagpb.decode_node(dagpb.encode_node(links, unixfs))
    assert (list(node.links), node.unixfs) == (links, unixfs)


@given(st.integers(0, 300_000))
def test_the_frame_of_a_leaf_is_a_node_around_it(length: int) -> None:
    before, after = dagpb.leaf_frame(length)
    node = dagpb.decode_node(before + bytes(length) + after)
    assert node == dagpb.PBNode(UnixfsData(UnixfsKind.FILE, bytes(length), length, []), [])
    assert before + bytes(length) + after == dagpb.encode_node([], UnixfsData(UnixfsKind.FILE, bytes(length), length))


def test_known_bytes_are_encoded() -> None:
    assert dagpb.encode_node([], UnixfsData(UnixfsKind.DIRECTORY)).hex() == "0a020801"
    before, after = dagpb.leaf_frame(0)
    assert (before + after).hex() == "0a0408021800"
    before, after = dagpb.leaf_frame(5)
    assert dagpb.decode_node(before + b"hello" + after).unixfs == UnixfsData(UnixfsKind.FILE, b"hello", 5, [])


@pytest.mark.parametrize("links", [[A], [A, B], [A, B, A]])
def test_links_may_all_come_after_the_data(links: list[PBLink]) -> None:
    assert list(dagpb.decode_node(DATA + fields(*links)).links) == links


def test_links_may_not_be_on_both_sides_of_the_data() -> None:
    with pytest.raises(MalformedContent):
        dagpb.decode_node(fields(A) + DATA + fields(B))


def test_the_packed_form_is_read() -> None:
    assert dagpb.decode_node(bytes.fromhex("0a06" + "0802" + "2202" + "0102")).unixfs.sizes == [1, 2]
    assert dagpb.decode_node(bytes.fromhex("0a08" + "0802" + "4204" + "08017801")).unixfs.kind is UnixfsKind.FILE


@pytest.mark.parametrize(
    "data",
    [
        "",  # no data
        "0a0208",
        "0a020809",  # unknown kind
        "0a0208010a020801",  # twice
        "1a0208010a020801",  # an unknown field
        "0b020801",
        "12000a020801",  # a link without a CID
        "12020a000a020801",
        "120212000a020801",
        "0a047a020801",
        "0a021801",  # without a kind
    ],
)
def test_malformed_nodes_are_refused(data: str) -> None:
    with pytest.raises(MalformedContent):
        dagpb.decode_node(bytes.fromhex(data))


def fields(*links: PBLink) -> bytes:
    """Return only the link fields of a node."""
    return dagpb.encode_node(links, UnixfsData(UnixfsKind.DIRECTORY)).removesuffix(DATA)


def framed(link: str) -> bytes:
    """Return a node with a link of these bytes."""
    message = bytes.fromhex(link)
    return b"\x12" + bytes((len(message),)) + message + DATA


A_CID = "0a24" + bytes(A.cid).hex()


@pytest.mark.parametrize(
    ("link", "name", "size"),
    [
        (A_CID, "", 0),
        (A_CID + "12016e", "n", 0),
        (A_CID + "1807", "", 7),
        (A_CID + "1200" + "1800", "", 0),
    ],
)
def test_optional_fields_of_a_link_may_be_absent(link: str, name: str, size: int) -> None:
    assert list(dagpb.decode_node(framed(link)).links) == [PBLink(A.cid, name, size)]


@pytest.mark.parametrize(
    "link",
    [
        A_CID + A_CID,  # twice
        "12016e" + A_CID,  # out of order
        A_CID + "1807" + "12016e",
        A_CID + "2001",  # an unknown field
        "0a25" + bytes(A.cid).hex() + "00",  # more than a CID
        "0801",  # a number in its place
        A_CID + "12016e" + "12016e",
    ],
)
def test_malformed_links_are_refused(link: str) -> None:
    with pytest.raises(MalformedContent):
        dagpb.decode_node(framed(link))


def test_it_has_so_many_links() -> None:
    link = bytes.fromhex("1226" + A_CID)
    assert len(dagpb.decode_node(link * 65_536 + DATA).links) == 65_536
    with pytest.raises(MalformedContent):
        dagpb.decode_node(link * 65_537 + DATA)


def test_names_are_utf8() -> None:
    block = dagpb.encode_node([A], UnixfsData(UnixfsKind.DIRECTORY)).replace(b"\x12\x01a", b"\x12\x01\xff")
    with pytest.raises(MalformedContent):
        dagpb.decode_node(block)


@given(st.binary(max_size=200))
def test_no_bytes_break_it(data: bytes) -> None:
    try:
        dagpb.decode_node(data)
    except MalformedContent:
        return


@given(st.binary(max_size=40), st.integers(0, 60))
def test_no_change_of_a_node_breaks_it(noise: bytes, at: int) -> None:
    block = dagpb.encode_node([A, B], UnixfsData(UnixfsKind.FILE, b"data", 7, (1, 2)))
    try:
        dagpb.decode_node(block[:at] + noise + block[at + len(noise) :])
    except MalformedContent:
        return


@pytest.mark.parametrize("field", [b"\x20\x01", b"\x18\x01", b"\x42\x00"], ids=["sizes", "length", "time"])
def test_node_with_too_many_fields_is_refused(field: bytes) -> None:
    """Fields of two bytes each: a block of them would take seconds."""
    data = b"\x08\x02" + field * 150_000
    block = b"\x0a" + varint.encode_varint(len(data)) + data
    with pytest.raises(MalformedContent, match="too many fields"):
        dagpb.decode_node(block)


def test_sizes_in_the_packed_form_are_counted_too() -> None:
    data = b"\x08\x02\x22" + varint.encode_varint(70_000) + b"\x01" * 70_000
    with pytest.raises(MalformedContent, match="too many fields"):
        dagpb.decode_node(b"\x0a" + varint.encode_varint(len(data)) + data)
