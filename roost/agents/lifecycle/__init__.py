"""Stories that cross rooms: launch, restart, teardown, detail, and the reconciler that keeps them true."""
