"""Skills: the library of a tenant, and the skills that agents have."""
