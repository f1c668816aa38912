"""Rules of a `_redirects` file, for paths that do not exist (ipfs/specs, web redirects file). Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl, quote, urlencode

from roost.http.storage_gateway.errors import InvalidGatewayUrl, InvalidRedirectsFile
from roost.http.storage_gateway.headers import URL_CHARACTERS
from roost.http.storage_gateway.request import PATH_DEPTH_LIMIT, TOKEN_FIELD, parse_path

REDIRECTS_FILE = "_redirects"
MAX_FILE_BYTES = 64 * 1024
_MAX_RULES = 1_000
_MAX_TARGET = 8 * 1024
"""Maximum characters of a URL with its placeholders filled in, which may repeat."""
_DEFAULT_STATUS = "301"
_STATUSES = {str(status): status for status in (200, 301, 302, 303, 307, 308, 404, 410, 451)}
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_PATH_END = re.compile(r"[?#]")
# No user name, and no placeholder in the host, which would let visitors choose where the site leads.
_WEB_URL = re.compile(
    r"https?://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?(?:[/?#].*)?", re.ASCII | re.IGNORECASE
)
_SLASHES = re.compile("/{2,}")
_SPLAT = "splat"


@dataclass(frozen=True)
class RedirectTarget:
    """The result of a rule: a status, and an encoded URL or path."""

    status: int
    url: str

    @property
    def is_redirect(self) -> bool:
        return 300 <= self.status < 400

    @property
    def path(self) -> Sequence[str]:
        """The names of the path to serve. Raises InvalidGatewayUrl."""
        return parse_path(_PATH_END.split(self.url)[0])


@dataclass(frozen=True)
class RedirectRule:
    """A rule. segments: decoded names, None where `placeholders` stand. has_splat: more names may follow.

    Placeholders and `to` are encoded for URLs.
    """

    segments: Sequence[str | None]
    placeholders: Sequence[str]
    has_splat: bool
    to: str
    status: int

    def match(self, path: Sequence[str]) -> Mapping[str, str] | None:
        """Return the encoded value of each placeholder, or None if the path does not match."""
        count = len(self.segments)
        if len(path) < count or (len(path) > count and not self.has_splat):
            return None
        pairs = list(zip(self.segments, path, strict=False))
        if any(segment is not None and segment != name for segment, name in pairs):
            return None
        # Encode only what is used: a path can be long, and many rules can begin with placeholders.
        values = [quote(name, safe="") for segment, name in pairs if segment is None]
        found = dict(zip(self.placeholders, values, strict=True))
        return found | {_SPLAT: "/".join(quote(name, safe="") for name in path[count:])} if self.has_splat else found


@lru_cache(maxsize=32)
def parse_redirects(content: bytes) -> Sequence[RedirectRule]:
    """Parse a `_redirects` file. Raises InvalidRedirectsFile, which names the line."""
    if len(content) > MAX_FILE_BYTES:
        raise InvalidRedirectsFile(f"The _redirects file has more than {MAX_FILE_BYTES:,} bytes")
    rules: list[RedirectRule] = []
    for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            line = raw.decode().strip(" \t\r")
            if not line or line.startswith("#"):
                continue
            rules.append(_parse_rule(line))
        except UnicodeDecodeError:
            raise _invalid_line(number, "the text is not UTF-8") from None
        except _InvalidRule as error:
            raise _invalid_line(number, str(error)) from None
        if len(rules) > _MAX_RULES:
            raise _invalid_line(number, f"there are more than {_MAX_RULES:,} rules")
    return rules


def find_target(rules: Sequence[RedirectRule], path: Sequence[str]) -> RedirectTarget | None:
    """Apply the first rule that matches a path; None if none does, or its target would be too long."""
    for rule in rules:
        if (values := rule.match(path)) is not None:
            return _fill_in(rule, values)
    return None


def join_query(url: str, query: str) -> str:
    """Add the query of a request to the URL of a redirect; its fields replace those of the same name.

    The access token of the gateway is only for the gateway.
    """
    rest, hash_sign, fragment = url.partition("#")
    base, _, static = rest.partition("?")
    own = parse_qsl(query, keep_blank_values=True)
    if not url.startswith("/"):
        own = [(name, value) for name, value in own if name != TOKEN_FIELD]
    names = {name for name, _ in own}
    fields = [(name, value) for name, value in parse_qsl(static, keep_blank_values=True) if name not in names]
    merged = urlencode(fields + own) if own else static
    return f"{base}{'?' if merged else ''}{merged}{hash_sign}{fragment}"


class _InvalidRule(Exception):  # noqa: N818 - a refused rule is an expected outcome
    """The reason why a line is refused."""


def _invalid_line(number: int, reason: str) -> InvalidRedirectsFile:
    return InvalidRedirectsFile(f"The _redirects file is invalid in line {number}: {reason}")


def _parse_rule(line: str) -> RedirectRule:
    """Parse `from to [status]`. Raises _InvalidRule."""
    if _CONTROL.search(line):
        raise _InvalidRule("a control character is not allowed")
    fields = re.split(r"[ \t]+", line)
    if not 2 <= len(fields) <= 3:
        raise _InvalidRule(f"a rule is 'from to [status]', got {len(fields)} fields")
    status = fields[2] if len(fields) == 3 else _DEFAULT_STATUS
    if status not in _STATUSES:
        reason = "a rule cannot replace what exists" if status.endswith("!") else f"got {_shown(status)}"
        raise _InvalidRule(f"the status must be one of {', '.join(_STATUSES)}; {reason}")
    segments, placeholders, has_splat = _parse_from(fields[0])
    to = _parse_to(fields[1], _STATUSES[status])
    return RedirectRule(segments, placeholders, has_splat, to, _STATUSES[status])


def _parse_from(text: str) -> tuple[Sequence[str | None], Sequence[str], bool]:
    path = text.removesuffix("*")
    has_splat = path != text
    if not path.startswith("/") or "*" in path or (has_splat and not path.endswith("/")) or _PATH_END.search(path):
        raise _InvalidRule(f"'from' must be a path like /a/:name/*, got {_shown(text)}")
    names = _decode_path(path)
    if len(names) > PATH_DEPTH_LIMIT:
        raise _InvalidRule(f"'from' has more than {PATH_DEPTH_LIMIT} segments")
    raw = path.strip("/").split("/") if names else []
    is_placeholder = [len(one) > 1 and one.startswith(":") for one in raw]
    placeholders = [_encode_url(one[1:]) for one, is_one in zip(raw, is_placeholder, strict=True) if is_one]
    taken = [*placeholders, _SPLAT] if has_splat else placeholders
    if len(set(taken)) < len(taken):
        raise _InvalidRule(f"a placeholder occurs twice in {_shown(text)}")
    segments = [None if is_one else name for name, is_one in zip(names, is_placeholder, strict=True)]
    return segments, placeholders, has_splat


def _parse_to(text: str, status: int) -> str:
    if text.startswith("/") and not text.startswith(("//", "/\\")):
        _decode_path(_PATH_END.split(text)[0])
    elif _WEB_URL.fullmatch(text) is None:
        raise _InvalidRule(f"'to' must be a path or a URL with http or https, got {_shown(text)}")
    elif not 300 <= status < 400:
        raise _InvalidRule(f"with status {status}, 'to' must be a path of the site, got {_shown(text)}")
    return _encode_url(text)


def _encode_url(text: str) -> str:
    return quote(text, safe=f"{URL_CHARACTERS}#[]")


def _decode_path(path: str) -> Sequence[str]:
    try:
        return parse_path(path)
    except InvalidGatewayUrl:
        raise _InvalidRule(f"{_shown(path)} has an empty segment, '.', '..' or invalid UTF-8") from None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:80]}...")


def _fill_in(rule: RedirectRule, values: Mapping[str, str]) -> RedirectTarget | None:
    if len(rule.to) + sum(rule.to.count(f":{name}") * len(value) for name, value in values.items()) > _MAX_TARGET:
        return None
    url = rule.to
    for name in sorted(values, key=len, reverse=True):  # `:id` is also the beginning of `:idea`
        url = url.replace(f":{name}", values[name])
    if url.startswith("/"):  # an empty splat would make `/:splat/a` a URL of the host `a`
        path = _PATH_END.split(url)[0]
        url = _SLASHES.sub("/", path) + url[len(path) :]
    return RedirectTarget(rule.status, url)
