"""Print as JSON what Hermes's own loader reads: `python hermes.py ROOT`; below ROOT each folder has a skill."""

import json
import sys
from pathlib import Path

import agent.skill_utils  # pyright: ignore[reportMissingImports] - Hermes's own, in its Python
import tools.skills_tool as skills  # pyright: ignore[reportMissingImports] - Hermes's own, in its Python

agent.skill_utils.get_external_skills_dirs = list
found = {}
for folder in Path(sys.argv[1]).iterdir():
    skills._skills_dir = lambda folder=folder: folder
    skills._SKILLS_CACHE.clear()
    listed = skills._find_all_skills()
    found[folder.name] = [listed[0]["name"], listed[0]["description"]] if listed else None
print(json.dumps(found))
