"""Names of domains in one form, and the names that no tenant can have. Pure.

A name is compared in lower case, as ASCII (IDNA 2008 with the mapping of UTS #46), without a dot at its end.
"""

import re
import unicodedata
from collections.abc import Collection
from functools import cache
from ipaddress import ip_address

import idna
from publicsuffixlist import PublicSuffixList

from roost.domain_names.errors import InvalidDomain

_NAME_LIMIT = 253
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]{1,61}[a-z0-9])", re.ASCII)
_RESERVED = frozenset(
    """
    abuse admin administrator agents api app assets auth autoconfig autodiscover billing blog cdn console dashboard dev
    docs example ftp gateway gateways git help hostmaster imap internal ipfs ipns localhost login mail metrics mx news
    ns ns1 ns2 pop postmaster private proxy public root secure security signin smtp ssl staging static status support
    system test tls uploads webmail webmaster wpad www
    """.split()
)
BRANDS = """
    amazon anthropic binance coinbase facebook github google hermes instagram ledger metamask microsoft netflix openai
    openclaw opensea paypal pinata roost telegram trezor trustwallet uniswap walletconnect whatsapp
""".split()
"""Names of services that phishing imitates; no subdomain contains one."""
_SPECIAL_SUFFIXES = ("localhost", "local", "internal", "invalid", "onion", "arpa", "home", "lan", "corp")
_LOOKALIKES = str.maketrans(
    {
        **dict(zip("0134578|", "oieastbl", strict=True)),
        **dict(zip("аеорсухіјѕԁԛԝһӏкмтвнгп", "aeopcyxijsdqwhlkmtbhrn", strict=True)),
        **dict(zip("αβεικνορτυχγ", "abeiknoptuxy", strict=True)),
        **dict(zip("ıłøđħ", "ilodh", strict=True)),
    }
)
"""Characters that look like Latin letters: digits, Cyrillic, Greek, and letters that no decomposition makes plain."""


def parse_subdomain(text: str, reserved_words: Collection[str], field: str = "subdomain") -> str:
    """Return the first label of a platform address in its one form. Raises InvalidDomain.

    field: the request's field that the messages name.
    """
    name = text.strip().lower()
    if not _SUBDOMAIN.fullmatch(name) or "--" in name:
        raise InvalidDomain(
            f"{field} must be 3 to 63 letters, digits or single hyphens, with a letter or digit at both ends, "
            f"got {text[:80]!r}"
        )
    if name in _RESERVED:
        raise InvalidDomain(f"{field} {name} is reserved")
    _check_words(name, name, (*BRANDS, *reserved_words))
    return name


def parse_custom_domain(text: str, own_domain: str, reserved_words: Collection[str]) -> str:
    """Return a domain of a tenant's own in its one form; `own_domain` is that of the platform. Raises InvalidDomain."""
    shown = text[:80]
    name = text.strip().removesuffix(".")
    if len(name) > _NAME_LIMIT or _is_address(name):
        raise InvalidDomain(f"customDomain must be a name of at most {_NAME_LIMIT} characters, got {shown!r}")
    try:
        ascii_name = idna.encode(name, uts46=True, std3_rules=True).decode()
        unicode_name = idna.decode(ascii_name)
    except (idna.IDNAError, UnicodeError) as error:
        raise InvalidDomain(f"customDomain is no valid name: {str(error)[:200]}") from None
    if len(ascii_name) > _NAME_LIMIT or "." not in ascii_name or _is_address(ascii_name):
        raise InvalidDomain(f"customDomain must have at least two labels, such as app.example.com, got {shown!r}")
    if _is_within(ascii_name, own_domain):
        raise InvalidDomain(f"customDomain must not be {own_domain} or a part of it; use subdomain")
    suffix = ascii_name.rpartition(".")[2]
    if suffix in _SPECIAL_SUFFIXES or suffix.isdigit():
        raise InvalidDomain(f"customDomain must be a name of the public DNS, got {shown!r}")
    if _public_suffixes().is_public(ascii_name):
        raise InvalidDomain(f"customDomain {ascii_name} is a public suffix, under which others have names")
    _check_words(ascii_name, unicode_name, reserved_words)
    return ascii_name


def _check_words(name: str, shown: str, reserved_words: Collection[str]) -> None:
    """Raise InvalidDomain for a name in which a reader finds a reserved word."""
    skeleton = _skeleton(shown)
    for word in reserved_words:
        if word and _skeleton(word) in skeleton:
            raise InvalidDomain(f"{name} contains the reserved word {word}")


def _skeleton(text: str) -> str:
    """Return text as a reader sees it: plain Latin letters without accents, hyphens and dots."""
    plain = unicodedata.normalize("NFKD", text).casefold().translate(_LOOKALIKES)
    return "".join(letter for letter in plain if letter.isalnum())


def _is_within(name: str, parent: str) -> bool:
    return name == parent or name.endswith(f".{parent}")


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


@cache
def _public_suffixes() -> PublicSuffixList:
    return PublicSuffixList(accept_unknown=True)
