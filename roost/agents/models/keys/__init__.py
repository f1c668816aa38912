"""Keys of model providers: each is tried before it replaces anything."""
