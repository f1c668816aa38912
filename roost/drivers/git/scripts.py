"""Sandboxed commands of Git: scripts, the programs and folders that they see, their configuration and their limits.

A script has a repository as its working directory, the data of a command at descriptors 0 and 1, and the control socket
at descriptor 3, to which it writes `exit STATUS` at its end. Its arguments are never part of its text.

A commit becomes durable by the sync of two folders, since Git syncs files and not the folders that name them.
"""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from roost.drivers.git.contract import MAIN, MAX_PACK_BYTES, GitUnavailable
from roost.drivers.runtime.contract import ContainerLimits
from roost.drivers.sandbox.contract import COMMAND_FOLDER, SCRIPT_FOLDER, SandboxCommand

INTERNAL_REFS = "refs/roost"
"""References that clients neither see nor change."""
PENDING = f"{INTERNAL_REFS}/push"
"""The commit of a push from before it is applied until `main` has moved."""
UNKNOWN_COMMIT, PUSH_UNFINISHED = 44, 45
"""Statuses of scripts that found no such commit, or a recorded push."""

COLLECTED = "collected"
"""An empty file, whose time is that of the last collection."""

MAX_PACKS = 50
_KEPT_REFS = f"{INTERNAL_REFS}/kept"
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

_end = 'echo "exit {status}" >&3; exit'.format
_check_commit = f'git cat-file -e "$1^{{commit}}" 2>/dev/null || {{ {_end(status=UNKNOWN_COMMIT)}; }}\n'
_check_push = f"git rev-parse -q --verify {PENDING} >/dev/null && {{ {_end(status=PUSH_UNFINISHED)}; }}\n"
# Every commit and push adds a pack; merging them by size keeps their number logarithmic. It also adds deltas.
REPACK = f"set -- objects/pack/*.pack; [ $# -le {MAX_PACKS} ] || git repack -q -d --geometric=2 || true"

CREATE = f"""
rm -rf objects/tmp_objdir-* objects/incoming-* objects/pack/tmp_* objects/pack/.tmp-*
rm -f ./*.lock refs/heads/*.lock {INTERNAL_REFS}/*.lock
git init --bare --quiet --template= --initial-branch=main . 2>/dev/null || exit
[ -e {COLLECTED} ] || : > {COLLECTED}
mkdir -p {INTERNAL_REFS}
sync . objects objects/pack refs refs/heads {INTERNAL_REFS}
"""
SHOW_HEAD = f"git rev-parse -q --verify {MAIN} || true"
CHECK_HEAD = f"{_check_commit}{_check_push}sync objects/pack"
LIST_TREE = f'{_check_commit}git ls-tree -r -l -z --full-tree "$1"'
LIST_CHANGES = f'{_check_commit}git diff-tree -r -z --no-renames --no-commit-id --raw "${{2:-{_EMPTY_TREE}}}" "$1"'
READ_OBJECTS = "git cat-file --batch"
READ_BLOBS = "git cat-file --batch --buffer"
# Serves the server during a push: the control socket brings the objects and asks about others, the data socket has the
# changes up to the field `.`, and then the blobs that are asked for.
READ_PUSH = f"""
IFS=' ' read -r quarantine new old <&3 || exit
export GIT_OBJECT_DIRECTORY="$PWD/objects/$quarantine" GIT_ALTERNATE_OBJECT_DIRECTORIES="$PWD/objects"
{{
  if [ -z "$old" ] || git merge-base --is-ancestor "$old" "$new" 2>/dev/null; then echo yes; else echo no; fi
  exec git cat-file --batch-check <&3
}} >&3 &
git diff-tree -r -z --no-renames --no-commit-id --raw "${{old:-{_EMPTY_TREE}}}" "$new" &&
  printf '.\\0' || printf '\\0!\\0!\\0'
git cat-file --batch
"""
ADVERTISE = 'git "$1" --stateless-rpc --http-backend-info-refs . 3>&-'
SERVE = 'git "$1" --stateless-rpc .'
# References for the time of the command keep the commits that standard input names; it may name ones that are missing.
COLLECT = f"""
rm -rf {_KEPT_REFS}
git cat-file --batch-check='update {_KEPT_REFS}/%(objectname) %(objectname)' | while IFS= read -r line; do
  case $line in update*) printf '%s\\n' "$line" ;; esac
done | git update-ref --stdin || exit
git repack -q -d --cruft --cruft-expiration="$1"
status=$?
rm -rf {_KEPT_REFS}
sync objects/pack && [ $status = 0 ] && : > {COLLECTED}
"""
UNDO_PUSH = f"rm -f {INTERNAL_REFS}/*.lock; git update-ref -d {PENDING} && sync {INTERNAL_REFS}"
FINISH_PUSH = f"""
rm -f refs/heads/*.lock {INTERNAL_REFS}/*.lock
commit=$(git rev-parse -q --verify {PENDING}) || {{ {_end(status=0)}; }}
git update-ref {MAIN} "$commit" && sync objects/pack refs/heads && git update-ref -d {PENDING}
"""

# A copy has the objects that are younger than its last time, and all that names them. Files may vanish meanwhile.
READ_FILES = """
for part in "--exclude=./objects ." "--newer=@$1 ./objects"; do
  tar -c $part || [ $? = 1 ] || exit
done
"""
WRITE_FILES = """
for name in *; do [ "$name" = objects ] || rm -rf "$name"; done
tar -x --ignore-zeros --no-same-owner && sync -f .
"""

_MIB = 1024**2
_ADDRESS_SPACE_KIB = 1536 * 1024
_CPU_SECONDS = 600
_VERSION_SECONDS = 10
_LIMITS = ContainerLimits(memory_bytes=2048 * _MIB, cpus=2.0, pids=128, file_bytes=4 * MAX_PACK_BYTES, open_files=1024)
_PROGRAMS_PATH = "/usr/local/bin:/usr/bin:/bin"
_PACKAGES = {"git": "git", "tar": "tar"}
_PROGRAMS = ("git", "mkdir", "rm", "sync", "tar")

# Limits of address space and time hold on machines without control groups too.
_PREFACE = f"exec 3>&1 1>&0\nulimit -v {_ADDRESS_SPACE_KIB}\nulimit -t {_CPU_SECONDS}\n"
_EXIT = '\necho "exit $?" >&3\n'

_CONFIGURATION: Mapping[str, str] = {
    "safe.directory": COMMAND_FOLDER,
    "core.hooksPath": SCRIPT_FOLDER,
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "core.fsync": "all",
    "core.logAllRefUpdates": "false",
    # Larger files are streamed instead of held in memory.
    "core.bigFileThreshold": "16m",
    "core.packedGitWindowSize": "16m",
    "core.packedGitLimit": "256m",
    "core.deltaBaseCacheLimit": "32m",
    "pack.threads": "2",
    "pack.windowMemory": "64m",
    "transfer.fsckObjects": "true",
    "transfer.hideRefs": INTERNAL_REFS,
    "receive.fsckObjects": "true",
    "receive.denyDeletes": "true",
    "receive.denyNonFastForwards": "true",
    "receive.maxInputSize": str(MAX_PACK_BYTES),
    "receive.autogc": "false",
    "receive.advertisePushOptions": "false",
    # Every push stays one pack, so that making it durable takes the sync of one folder.
    "receive.unpackLimit": "1",
    "uploadpack.allowFilter": "true",
    "uploadpack.allowAnySHA1InWant": "true",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_ENVIRONMENT: Mapping[str, str] = {
    "PATH": _PROGRAMS_PATH,  # where sandboxes have them, or this machine
    "LANG": "C.UTF-8",
    "HOME": "/nonexistent",
    "GIT_DIR": COMMAND_FOLDER,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOC_LIMIT": "512m",  # of one object, which a small delta can make of any size
    "GIT_CONFIG_COUNT": str(len(_CONFIGURATION)),
    **{f"GIT_CONFIG_KEY_{number}": name for number, name in enumerate(_CONFIGURATION)},
    **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_CONFIGURATION.values())},
}


@dataclass(frozen=True)
class GitScript:
    """A script of a repository; `hooks` by name, `protocol` is what the client says in `Git-Protocol`."""

    text: str
    arguments: tuple[str, ...] = ()
    is_writable: bool = False
    hooks: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    protocol: str = ""


def sandbox_command(folder: Path, script: GitScript) -> SandboxCommand:
    """Return the command of a script for the repository in `folder`. Raises GitUnavailable."""
    programs, execution_path = find_git()
    environment = {**_ENVIRONMENT, "GIT_EXEC_PATH": execution_path}
    if script.protocol:
        environment["GIT_PROTOCOL"] = script.protocol
    return SandboxCommand(
        script=f"{_PREFACE}{script.text}{_EXIT}",
        arguments=script.arguments,
        folder=folder,
        is_writable=script.is_writable,
        programs=programs,
        environment=environment,
        scripts=script.hooks,
        limits=_LIMITS,
    )


@cache
def find_git() -> tuple[Mapping[str, Path], str]:
    """Return the programs by their paths in a sandbox, and the path of Git's own. Raises GitUnavailable."""
    programs: dict[str, Path] = {}
    for name in _PROGRAMS:
        found = shutil.which(name, path=_PROGRAMS_PATH)
        if found is None:
            raise GitUnavailable(f"{name} is missing: install the package {_PACKAGES.get(name, 'coreutils')}")
        programs[f"/bin/{name}"] = Path(found).resolve()
    try:
        command = [programs["/bin/git"], "--exec-path"]
        result = subprocess.run(command, check=True, capture_output=True, timeout=_VERSION_SECONDS, text=True, env={})
    except (OSError, subprocess.SubprocessError) as error:
        raise GitUnavailable(f"git cannot be run: {error}") from None
    path = Path(result.stdout.strip())
    if not any(path.is_relative_to(folder) for folder in ("/usr/lib", "/usr/lib64", "/usr/lib32")):
        programs[str(path)] = path.resolve()
    return programs, str(path)
