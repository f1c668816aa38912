"""Errors of webhooks; clients show the messages."""

from roost.core.problem import AccessDenied, InvalidInput, NotFound, TooManyRequests


class WebhookNotFound(NotFound):
    """The webhook does not exist or belongs to another tenant; the response does not say which."""

    message = "Webhook not found"


class DeliveryNotFound(NotFound):
    message = "Delivery not found"


class WebhookLimitReached(AccessDenied):
    message = "Webhook limit reached"


class InvalidWebhookEvents(InvalidInput):
    message = "events must be event types"
    field = "events"


class EmptyWebhookUpdate(InvalidInput):
    message = "url, events, description or enabled is required"


class WebhookQueueFull(TooManyRequests):
    message = "Too many deliveries to this webhook at once"
