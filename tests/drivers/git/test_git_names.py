"""Names that Git reserves; Git itself is the oracle."""

import subprocess
from pathlib import Path

from roost.drivers.git.contract import is_git_path
from tests.conformance.git_objects import git

PARTS = [
    *(".git", ".GIT", ".Git", ".git ", ".git.", ".git. . ", ".git:", ".git::$INDEX_ALLOCATION", ".git\\x", "a\\.git"),
    *("git~1", "GIT~1", "git~1 .", "git~2", "git~10", "git~1x", ".gitx", ".git x", ".gi", "git", ".git\n", ".g\u0131t"),
    *(".g\u200cit", ".git\u200f", "\ufeff.git", ".g\u202ait", ".\u206agIt", ".g\u200bit", ".g\u0300it", "\udcff.git"),
    *(
        ".gitignore",
        ".gitmodules",
        ".GitModules",
        ".gitmodules ",
        ".gitmodules.x",
        ".gitmodules:x",
        ".gitmodu\u200cles",
    ),
    *("gitmod~1", "gitmod~4", "gitmod~5", "GI7EBA~1", "gi7eba~9", "gi7eba~0", "gi7eb~10", "gi7e~123", "g~123456"),
    *("gi7eba~10", "gi7d29~1", "gitmodules", "x\\gitmod~1", "..git", "...", ". .", "~1"),
]


def refused_by_git(folder: Path, mode: str, path: str) -> bool:
    line = f"{mode} {'1' * 40}\t".encode() + path.encode(errors="surrogateescape") + b"\0"
    protected = ("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true")
    command = ["git", *protected, "update-index", "-z", "--index-info"]
    result = subprocess.run(command, cwd=folder, input=line, capture_output=True, check=False)
    return b"Ignoring path" in result.stderr


def test_reserved_names_are_those_of_git(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for part in PARTS:
        for path, mode in ((f"a/{part}/b", "100644"), (f"a/{part}", "100644"), (f"a/{part}", "120000")):
            is_reserved = is_git_path(path, is_link=mode == "120000")
            assert is_reserved == refused_by_git(tmp_path, mode, path), (mode, path)
    assert is_git_path("a/.gitmodules/b", is_link=True)
    assert refused_by_git(tmp_path, "120000", "a/.gitmodules/b")
