"""Webhooks of a tenant: made, changed, asked what became of their deliveries. And the outbox of what they are told.

A tenant's row is held while its webhooks change, so that the limit is exact under any number of parallel calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from roost.core import clock, ids, place
from roost.core.db import Database
from roost.core.place import Place
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.courier.contract import Courier
from roost.identity import tenants
from roost.storage.files.model import Change, File
from roost.storage.webhooks import message, store
from roost.storage.webhooks.errors import DeliveryMissing, NothingToChange, WebhookLimit, WebhookMissing
from roost.storage.webhooks.model import (
    OVERLAP,
    PAGE_LIMIT,
    SECRET_BYTES,
    SECRETS_LIMIT,
    WEBHOOK_LIMIT,
    Delivery,
    Event,
    Made,
    State,
    Webhook,
    checked_events,
)


@dataclass(frozen=True)
class Wish:
    """What a tenant says of a webhook; None stays as it is."""

    url: str | None = None
    events: Sequence[str] | None = None
    description: str | None = None
    enabled: bool | None = None


class Webhooks:
    def __init__(self, db: Database, sealer: Sealer, courier: Courier) -> None:
        self._db = db
        self._sealer = sealer
        self._courier = courier

    def notice(self, connection: Connection, change: Change, file: File, before: File | None) -> None:
        """Put what happened to a file into the outbox, for every webhook that wants it, inside that transaction."""
        kind = message.event_type(change, file)
        wanting = [one for one in store.of_tenant(connection, file.tenant_id) if one.wants(kind)]
        if not wanting:
            return
        now = clock.now()
        event = Event(ids.new_id(), file.tenant_id, kind, message.of_file(change, file, before, now), now)
        store.add_event(connection, event)
        store.add_deliveries(connection, [new_delivery(one.id, event) for one in wanting])

    async def list(self, tenant_id: str) -> Sequence[Webhook]:
        """The oldest first."""
        return await self._db.read(lambda connection: store.of_tenant(connection, tenant_id))

    async def get(self, tenant_id: str, webhook_id: str) -> Webhook:
        """Raises WebhookMissing."""
        return await self._db.read(lambda connection: found(connection, tenant_id, webhook_id))

    async def create(self, tenant_id: str, url: str, wish: Wish) -> Made:
        """Raises UrlRefused, InvalidEvents, WebhookLimit."""
        self._courier.check(url)
        events = checked_events(wish.events or ())

        def add(connection: Connection) -> Made:
            tenants.hold(connection, tenant_id)
            if len(store.of_tenant(connection, tenant_id)) >= WEBHOOK_LIMIT:
                raise WebhookLimit
            now, on = clock.now(), wish.enabled is not False
            made = Webhook(ids.new_id(), tenant_id, url, wish.description or "", events, on, None, None, now, now)
            store.add(connection, made)
            return self._renewed(connection, made, now)

        return await self._db.write(add)

    async def update(self, tenant_id: str, webhook_id: str, wish: Wish) -> Webhook:
        """To enable one forgives it all failures. Raises UrlRefused, InvalidEvents, NothingToChange, WebhookMissing."""
        if wish == Wish():
            raise NothingToChange
        if wish.url is not None:
            self._courier.check(wish.url)
        events = None if wish.events is None else checked_events(wish.events)

        def change(connection: Connection) -> Webhook:
            tenants.hold(connection, tenant_id)
            old = found(connection, tenant_id, webhook_id, lock=True)
            new = replace(
                old,
                url=old.url if wish.url is None else wish.url,
                events=old.events if events is None else events,
                description=old.description if wish.description is None else wish.description,
                updated_at=clock.now(),
            )
            if wish.enabled is not None:
                new = replace(new, enabled=wish.enabled, disabled_reason=None, failing_since=None)
            store.update(connection, new)
            return new

        return await self._db.write(change)

    async def delete(self, tenant_id: str, webhook_id: str) -> None:
        """What waits for it is not sent. Raises WebhookMissing."""

        def remove(connection: Connection) -> None:
            tenants.hold(connection, tenant_id)
            store.mark_deleted(connection, found(connection, tenant_id, webhook_id).id, clock.now())

        await self._db.write(remove)

    async def rotate_secret(self, tenant_id: str, webhook_id: str) -> Made:
        """A new secret; the one before signs beside it for a day. Raises WebhookMissing."""

        def rotate(connection: Connection) -> Made:
            tenants.hold(connection, tenant_id)
            webhook, now = found(connection, tenant_id, webhook_id), clock.now()
            store.retire_secrets(connection, webhook_id, now, now + OVERLAP, SECRETS_LIMIT - 1)
            return self._renewed(connection, webhook, now)

        return await self._db.write(rotate)

    async def deliveries(
        self, tenant_id: str, webhook_id: str, state: State | None, token: str | None, limit: int
    ) -> tuple[Sequence[Delivery], str | None]:
        """A page, the newest first, and the token of the next if there is one. Raises WebhookMissing, InvalidPage."""
        after = Place.parse(token) if token else None
        limit = min(max(limit, 1), PAGE_LIMIT)

        def read(connection: Connection) -> Sequence[Delivery]:
            found(connection, tenant_id, webhook_id)
            return store.page(connection, webhook_id, state, after, limit + 1)

        return place.page(await self._db.read(read), limit)

    async def redeliver(self, tenant_id: str, webhook_id: str, delivery_id: str) -> Delivery:
        """Send a message again now, with all attempts before it. Raises WebhookMissing, DeliveryMissing."""

        def renew(connection: Connection) -> Delivery:
            found(connection, tenant_id, webhook_id)
            store.send_again(connection, webhook_id, delivery_id, clock.now())
            delivery = store.delivery(connection, webhook_id, delivery_id)
            if delivery is None:
                raise DeliveryMissing
            return delivery

        return await self._db.write(renew)

    def _renewed(self, connection: Connection, webhook: Webhook, at: datetime) -> Made:
        secret, secret_id = Sensitive(ids.random_bytes(SECRET_BYTES)), ids.new_id()
        envelope = self._sealer.seal(secret.reveal(), store.PLACE.format(webhook_id=webhook.id, id=secret_id))
        store.add_secret(connection, webhook.id, secret_id, envelope, at)
        return Made(webhook, message.written(secret))


def found(connection: Connection, tenant_id: str, webhook_id: str, *, lock: bool = False) -> Webhook:
    """Raises WebhookMissing."""
    webhook = store.get(connection, tenant_id, webhook_id, lock=lock)
    if webhook is None:
        raise WebhookMissing
    return webhook


def new_delivery(webhook_id: str, event: Event, failures: int = 0) -> Delivery:
    """One that is due now. failures: as if so many attempts had failed."""
    return Delivery(
        id=ids.new_id(),
        webhook_id=webhook_id,
        event_id=event.id,
        event_type=event.type,
        state=State.PENDING,
        attempts=0,
        failures=failures,
        status=None,
        error=None,
        created_at=event.created_at,
        attempted_at=None,
        next_at=event.created_at,
        finished_at=None,
    )
