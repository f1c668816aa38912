"""Blob stores: whole objects by key, durable once committed."""
