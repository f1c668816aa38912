import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.content.unixfs import varint
from roost.storage.content.unixfs.cid import DAG_CBOR, DAG_PB, IDENTITY, RAW, SHA2_256, Cid
from roost.storage.content.unixfs.errors import InvalidCid, MalformedContent

V0 = "QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH"
V1 = "bafybeif7ztnhq65lumvvtr4ekcwd2ifwgm3awq4zfr3srh462rwyinlb4y"
HELLO = "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"


def test_a_block_and_its_cid() -> None:
    cid = Cid.for_block(RAW, b"hello world")
    assert str(cid) == HELLO
    assert cid.matches(b"hello world")
    assert not cid.matches(b"hello world!")
    assert Cid.parse(HELLO) == cid


def test_the_two_versions_of_one_content() -> None:
    assert str(Cid.parse(V0).v1()) == V1
    assert Cid.parse(V0).codec == DAG_PB
    assert str(Cid.parse(V0)) == V0


@pytest.mark.parametrize(
    "text",
    [
        HELLO,
        HELLO.upper(),
        "f01551220b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
        "F01551220B94D27B9934D3E08A52E52D7DA7DABFAC484EFE37A5380EE9088F7ACE2EFCDE9",
        "zb2rhj7crUKTQYRGCRATFaQ6YFLTde2YzdqbbhAASkL9uRDXn",
        "k2cwued9o1pvrt3q271rrqbo49x30tbxwpoeaq75z14e5ui2rzygpbe1",
        "uAVUSILlNJ7mTTT4IpS5S19p9q_rEhO_jelOA7pCI96zi783p",
    ],
)
def test_every_usual_alphabet(text: str) -> None:
    assert str(Cid.parse(text)) == HELLO


@pytest.mark.parametrize(
    "text",
    [
        "",
        "b",
        "Qm",
        "x" * 46,
        V0[:-1],
        V0 + "a",
        HELLO[:-1],
        HELLO + "a",
        HELLO + "=",
        HELLO[:-1] + "f",  # the last letter has a padding bit set
        " " + HELLO,
        "f01551220b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9 ",
        "f0255" + "00" * 34,
        "f" + "80" * 40,
        "f01551221" + "00" * 33,
        "f015512" + "ffff7f",
        "b" + "a" * 600,
        "zQmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH",
        "bäöü",
    ],
)
def test_malformed_cids_are_refused(text: str) -> None:
    with pytest.raises(InvalidCid):
        Cid.parse(text)


def test_the_bytes_of_a_cid() -> None:
    for text in (V0, V1, HELLO):
        cid = Cid.parse(text)
        assert Cid.read(bytes(cid) + b"rest") == (cid, len(bytes(cid)))
        for length in range(len(bytes(cid))):
            with pytest.raises(MalformedContent):
                Cid.read(bytes(cid)[:length])


def test_content_in_the_cid_itself() -> None:
    cid = Cid(1, RAW, IDENTITY, b"tiny")
    assert Cid.parse(str(cid)) == cid
    assert cid.matches(b"tiny")
    assert not Cid(1, RAW, 0x13, b"\0" * 64).matches(b"")


CODECS = st.sampled_from([RAW, DAG_PB, DAG_CBOR, 0x0129, 0x7FFF_FFFF])
OF_SHA256 = st.builds(Cid.for_block, CODECS, st.binary(max_size=16))
OF_OTHERS = st.builds(Cid, st.just(1), CODECS, st.sampled_from([IDENTITY, 0x13, 0xB220]), st.binary(max_size=128))
OLD = st.builds(Cid.for_block, st.just(DAG_PB), st.binary(max_size=16), st.just(0))


@given(OF_SHA256 | OF_OTHERS | OLD)
def test_any_cid_there_and_back(cid: Cid) -> None:
    assert Cid.parse(str(cid)) == Cid.from_bytes(bytes(cid)) == cid
    assert Cid.read(b"??" + bytes(cid) + b"!", 2) == (cid, 2 + len(bytes(cid)))
    assert cid.v1().v1() == cid.v1()
    assert cid.multihash == bytes(cid)[-len(cid.multihash) :]


@given(st.binary(max_size=80))
def test_any_bytes_are_one_cid_or_none(data: bytes) -> None:
    try:
        found, end = Cid.read(data)
    except MalformedContent:
        return
    assert bytes(found) == data[:end]


@given(st.text(max_size=80))
def test_any_text_is_one_cid_or_none(text: str) -> None:
    try:
        found = Cid.parse(text)
    except InvalidCid:
        return
    assert Cid.parse(str(found)) == found


@pytest.mark.parametrize(
    ("cid", "spellings"),
    [
        (Cid.parse(V0), [V1, V0]),
        (Cid.parse(V1), [V1, V0]),
        (Cid.parse(HELLO), [HELLO]),  # version 0 has dag-pb only
        (Cid(1, DAG_PB, IDENTITY, b""), ["bafyaaaa"]),  # and SHA-256 only
    ],
)
def test_all_spellings_of_a_cid(cid: Cid, spellings: list[str]) -> None:
    assert [str(one) for one in cid.spellings()] == spellings


def test_all_spellings_of_a_text() -> None:
    assert Cid.parse_spellings(V0) == Cid.parse_spellings(V1) == Cid.parse_spellings(V1.upper()) == [V1, V0]
    with pytest.raises(InvalidCid):
        Cid.parse_spellings("x")


def test_more_than_a_cid_is_none() -> None:
    with pytest.raises(MalformedContent):
        Cid.from_bytes(bytes(Cid.parse(HELLO)) + b"\0")


@pytest.mark.parametrize(
    ("algorithm", "length"), [(SHA2_256, 0), (SHA2_256, 31), (SHA2_256, 33), (IDENTITY, 129), (0x13, 1 << 40)]
)
def test_digests_of_a_wrong_length(algorithm: int, length: int) -> None:
    head = b"\x01" + varint.encode_varint(RAW) + varint.encode_varint(algorithm) + varint.encode_varint(length)
    with pytest.raises(MalformedContent):
        Cid.read(head + bytes(min(length, 200)))


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_a_cid_names_its_block_and_no_other(block: bytes, other: bytes) -> None:
    for cid in (Cid.for_block(RAW, block), Cid(1, RAW, IDENTITY, block)):
        assert cid.matches(block)
        assert cid.matches(memoryview(block))
        assert cid.matches(other) == (block == other)
    assert Cid.for_block(RAW, block).digest == hashlib.sha256(block).digest()
