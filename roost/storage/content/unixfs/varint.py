"""Unsigned varints of CIDs, CARs and protocol buffers (multiformats/unsigned-varint: at most 9 bytes)."""

from roost.storage.content.unixfs.errors import MalformedContent

_MAX_BYTES = 9
_ONE_BYTE = [bytes((number,)) for number in range(0x80)]


def encode_varint(number: int) -> bytes:
    if number <= 0x7F:
        return _ONE_BYTE[number]
    if number <= 0x1FFFFF:  # sizes of most files
        low, middle = number & 0x7F | 0x80, number >> 7
        return bytes((low, middle)) if middle <= 0x7F else bytes((low, middle & 0x7F | 0x80, middle >> 7))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def decode_varint(data: bytes | memoryview, at: int = 0) -> tuple[int, int]:
    """Return the number at `at` and the offset after it. Raises MalformedContent, also for padded forms."""
    if at < len(data) and (first := data[at]) < 0x80:  # most are
        return first, at + 1
    number = 0
    for place in range(_MAX_BYTES):
        if at + place >= len(data):
            raise MalformedContent("a number is cut off")
        byte = data[at + place]
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            if byte == 0 and place:
                raise MalformedContent("a number is not in its shortest form")
            return number, at + place + 1
    raise MalformedContent("a number is too long")
