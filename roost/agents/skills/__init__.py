"""Skills: folders with a `SKILL.md` that teach an agent a task."""
