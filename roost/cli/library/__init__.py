"""Commands of skills, the hub and templates."""
