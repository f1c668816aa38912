"""MurmurHash3 x64, of its 128 bits the first 64, by which sharded folders place names (ipfs/unixfs, HAMT)."""

_MASK = (1 << 64) - 1
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def hash64(data: bytes) -> bytes:
    """Eight bytes, the first of which decides the place in the first shard."""
    first = second = 0
    whole = len(data) - len(data) % 16
    for at in range(0, whole, 16):
        low = int.from_bytes(data[at : at + 8], "little")
        high = int.from_bytes(data[at + 8 : at + 16], "little")
        first = (_turned(first ^ _mixed(low, _C1, 31, _C2), 27) + second) * 5 + 0x52DCE729 & _MASK
        second = (_turned(second ^ _mixed(high, _C2, 33, _C1), 31) + first) * 5 + 0x38495AB5 & _MASK
    tail = data[whole:]
    second ^= _mixed(int.from_bytes(tail[8:], "little"), _C2, 33, _C1)
    first ^= _mixed(int.from_bytes(tail[:8], "little"), _C1, 31, _C2)
    first ^= len(data)
    second ^= len(data)
    first = first + second & _MASK
    second = second + first & _MASK
    return (_final(first) + _final(second) & _MASK).to_bytes(8, "big")


def _mixed(word: int, before: int, turn: int, after: int) -> int:
    return _turned(word * before & _MASK, turn) * after & _MASK


def _turned(word: int, by: int) -> int:
    return (word << by | word >> 64 - by) & _MASK


def _final(word: int) -> int:
    word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD & _MASK
    word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return word ^ word >> 33
