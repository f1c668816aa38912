"""What agents are made of: skills, the hub, templates and their instances."""
