"""Verdicts about bundles on a server: none is made twice, and no tenant makes two at a time (decision 0049)."""

import hashlib

from roost.agents.library.skills.bundle import Bundle
from roost.agents.library.skills.verdict import Verdict, check_bundle
from roost.agents.library.skills.verdict.rules import rules_version
from roost.core.machine.threads import FairThreads
from roost.core.ttl_cache import TTLCache

_LIFETIME = 3600.0
_SIZE = 200
"""A verdict has up to 100 kB."""


class SkillChecker:
    """Checks bundles beside the event loop, one at a time, and the tenants take turns.

    A check takes at most `CPU_LIMIT` seconds, so that a process of its own would start for little.
    """

    def __init__(self) -> None:
        self._threads = FairThreads(1, "skill-checks")
        self._verdicts = TTLCache[bytes, Verdict](_LIFETIME, _SIZE)

    async def check(self, tenant_id: str, bundle: Bundle, stored: Verdict | None = None) -> Verdict:
        """Return the verdict about files; `stored` is the one that was stored with them, if there is one."""
        if stored is not None and stored.rules_version == rules_version():
            return stored
        return await self._threads.run(tenant_id, lambda: self._check_or_recall(bundle))

    def _check_or_recall(self, bundle: Bundle) -> Verdict:
        digest = _digest_of(bundle)
        verdict = self._verdicts.get(digest)
        if verdict is None:
            verdict = check_bundle(bundle)
            self._verdicts.put(digest, verdict)
        return verdict


def _digest_of(bundle: Bundle) -> bytes:
    """Hash the paths and the contents, which are all that a verdict depends on."""
    digest = hashlib.sha256()
    for path, file in bundle.files.items():
        for part in (path.encode(), file.content):
            digest.update(len(part).to_bytes(8))
            digest.update(part)
    return digest.digest()
