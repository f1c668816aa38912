"""Content of many files and links of a stored tree, read with few queries and few reads of packs."""

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import aclosing

from roost.storage.content.model import BlockLocation, BlockMatch, ContentScope
from roost.storage.content.reader import ContentReader, ContentStat
from roost.storage.content.tree_walk import MemberKind, TreeMember
from roost.storage.content.unixfs.cid import RAW

BATCH_SIZE = 500
"""Members that are read at once."""
MemberContent = tuple[TreeMember, ContentStat, bytes | AsyncIterable[bytes]]


async def read_members(
    reader: ContentReader, scope: ContentScope, members: Sequence[TreeMember]
) -> AsyncGenerator[MemberContent]:
    """Yield files and links with their content, or the target of a link; files of one block last, read together.

    Read a content before the next is taken. Raises ContentNotFound, ContentDamaged, MalformedContent, BlobStoreFailed.
    """
    blocks = await reader.find_blocks(scope, [member.cid for member in members])
    slices: list[tuple[TreeMember, BlockMatch]] = []
    for member, block in zip(members, blocks, strict=True):
        if block.row.location is BlockLocation.SLICE and member.cid.codec == RAW:
            slices.append((member, block))
            continue
        found = await reader.describe_block(block)
        if member.kind is MemberKind.LINK:
            yield member, found, member.target
        else:
            async with aclosing(reader.stream_file(scope, found)) as content:
                yield member, found, content
    async with aclosing(reader.read_slices([block for _, block in slices])) as contents:
        async for index, data in contents:
            member, block = slices[index]
            yield member, await reader.describe_block(block), data
