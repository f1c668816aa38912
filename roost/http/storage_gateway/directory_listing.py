"""HTML listing of a folder, without scripts; every name is escaped for its context. Pure."""

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.dagpb import PBLink

ENTRY_LIMIT = 5_000
"""Maximum entries of a listing; it mentions that there are more, which have URLs like all others."""
NAMES_LIMIT = 2 * 1024**2
"""Maximum characters of all names together: a name can be as long as a block, and a block can occur repeatedly."""
VERSION = "2"
"""Part of the ETag; increase it with every change of the page."""
SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem}h1{font-size:1.1rem}h1,a{overflow-wrap:anywhere}"
    "td{padding:.1rem 1rem .1rem 0}.n{color:#666;text-align:right;white-space:nowrap}"
)


def render_listing(cid: Cid, path: Sequence[str], entries: Sequence[PBLink], *, more: bool) -> bytes:
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
    # A name may contain a colon, which would begin a scheme, or a character that ends the path.
    target = "./" + quote(link.name.encode("utf-8", "replace"), safe="")
    return f'<tr><td><a href="{target}">{escape(link.name)}</a></td><td class="n">{link.size:,}</td></tr>'
