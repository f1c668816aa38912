"""The OpenAPI description and the reference that is made from it."""
