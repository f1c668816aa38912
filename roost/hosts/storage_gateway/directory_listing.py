"""The page that lists a folder: plain HTML without scripts, every name escaped for where it stands. Pure."""

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from roost.storage.unixfs.cid import Cid
from roost.storage.unixfs.dagpb import PBLink

MOST = 5_000
"""Entries on the page; what is above is told, and has its addresses all the same."""
MOST_SIGNS = 2 * 1024**2
"""Of all names together: one block can be linked often, with a name in it as long as blocks are."""
VERSION = "2"
"""Another one for every change of the page, which caches keep by it."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem}h1{font-size:1.1rem}h1,a{overflow-wrap:anywhere}"
    "td{padding:.1rem 1rem .1rem 0}.n{color:#666;text-align:right;white-space:nowrap}"
)


def page(cid: Cid, path: Sequence[str], entries: Sequence[PBLink], *, more: bool) -> bytes:
    title = escape("/".join((str(cid), *path)))
    rows = ['<tr><td><a href="../">..</a></td><td></td></tr>'] if path else []
    rows += [_row(link) for link in entries]
    note = f'<p class="n">The first {len(entries):,} entries are shown.</p>' if more else ""
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{title}</h1><table>{''.join(rows)}</table>{note}</body></html>\n"
    ).encode("utf-8", "replace")


def _row(link: PBLink) -> str:
    # A name may have a colon, which would begin a scheme, or what a browser takes for the end of a path.
    target = "./" + quote(link.name.encode("utf-8", "replace"), safe="")
    return f'<tr><td><a href="{target}">{escape(link.name)}</a></td><td class="n">{link.size:,}</td></tr>'
