"""Where bytes are kept: whole objects by key, durable when they are committed."""
