"""Encryption of secrets' values, each bound to its tenant, its secret and its version."""

from roost.agents.setup.secrets import store
from roost.agents.setup.secrets.model import Secret, SecretsNotConfigured, UnreadableSecret
from roost.core import log
from roost.core.seal import Sealer, SealingKeyMissing, UnsealFailed
from roost.core.sensitive import Sensitive

_log = log.get_logger("secrets")


class SecretSealer:
    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def seal(self, secret: Secret, value: Sensitive[str]) -> bytes:
        """Encrypt a value. Raises SecretsNotConfigured."""
        try:
            return self._sealer.seal(value.reveal().encode(), _associated_data(secret))
        except SealingKeyMissing:
            raise SecretsNotConfigured from None

    def open(self, row: store.SecretRow) -> Sensitive[str]:
        """Decrypt a value. Raises UnreadableSecret and logs it, since the database may have been tampered with."""
        try:
            return Sensitive(self._sealer.open(row.sealed, _associated_data(row.secret)).reveal().decode())
        except (UnsealFailed, UnicodeDecodeError):
            _log.error("secret.unseal_failed", secret=row.secret.id, tenant=row.secret.tenant_id)
            raise UnreadableSecret(f"The secret {row.secret.name} could not be opened; set its value again") from None


def _associated_data(secret: Secret) -> str:
    return store.ASSOCIATED_DATA.format(tenant_id=secret.tenant_id, id=secret.id, version=secret.version)
