"""Shell scripts that run in the sandbox of a repository; their arguments are never part of their text.

A commit becomes durable by the sync of two folders, since Git syncs files and not the folders that name them.
"""

from roost.drivers.git.command import INTERNAL_REFS
from roost.drivers.git.contract import MAIN
from roost.drivers.git.push import PENDING

UNKNOWN_COMMIT, PUSH_UNFINISHED = 44, 45
"""Statuses of scripts that found no such commit, or a recorded push."""

COLLECTED = "collected"
"""An empty file, whose time is that of the last collection."""

MAX_PACKS = 50
_KEPT_REFS = f"{INTERNAL_REFS}/kept"
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

_end = 'echo "exit {status}" >&3; exit'.format
_check_commit = (
    f'git cat-file -e "$1^{{commit}}" 2>/dev/null || {{ {_end(status=UNKNOWN_COMMIT)}; }}\n'  # the first argument
)
_check_push = f"git rev-parse -q --verify {PENDING} >/dev/null && {{ {_end(status=PUSH_UNFINISHED)}; }}\n"
# Every commit and push adds a pack; merging them by size keeps their number logarithmic. It also adds deltas.
REPACK = f"set -- objects/pack/*.pack; [ $# -le {MAX_PACKS} ] || git repack -q -d --geometric=2 || true"

CREATE = f"""
rm -rf objects/tmp_objdir-* objects/incoming-* objects/pack/tmp_* objects/pack/.tmp-*
rm -f ./*.lock refs/heads/*.lock {INTERNAL_REFS}/*.lock
git init --bare --quiet --template= --initial-branch=main . 2>/dev/null || exit
[ -e {COLLECTED} ] || : > {COLLECTED}
sync . objects objects/pack refs refs/heads
"""
SHOW_HEAD = f"git rev-parse -q --verify {MAIN} || true"
MOVE_HEAD = f'{_check_commit}{_check_push}git update-ref {MAIN} "$1" && sync objects/pack refs/heads'
LIST_TREE = f'{_check_commit}git ls-tree -r -l -z --full-tree "$1"'
LIST_CHANGES = f'{_check_commit}git diff-tree -r -z --no-renames --no-commit-id --raw "${{2:-{_EMPTY_TREE}}}" "$1"'
READ_OBJECTS = "git cat-file --batch"
READ_BLOBS = "git cat-file --batch --buffer"
ADVERTISE = 'git "$1" --stateless-rpc --http-backend-info-refs . 3>&-'
SERVE = f'git "$1" --stateless-rpc .\nstatus=$?\n[ "$1" = upload-pack ] || {{ {REPACK}; }}\n(exit $status)'
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
