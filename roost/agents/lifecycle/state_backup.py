"""Save the state of a gateway before an update, and restore it when the update fails.

The copy is made in the container, so links and names that an agent left there lead nowhere else. The agent can damage
the copy, as it can the state itself. Only the copy of the last update is kept, in `.roost/saved` of the home.
"""

from collections.abc import Sequence

from roost.core.problem import Problem, ProblemKind
from roost.drivers.runtime.warden_client import WardenClient

SECONDS = 600.0
_NO_SPACE, _GONE = 3, 4

_SAVE = f"""set -eu
cd "$HOME"
name=$1; shift
rm -rf .roost/saved
mkdir -p .roost/saved/.new
need=65536
for folder; do
  if [ -e "$folder" ]; then need=$((need + $(du -sk -- "$folder" | cut -f1))); fi
done
free=$(df -Pk . | tail -n 1 | tr -s ' ' | cut -d' ' -f4)
[ "$free" -gt "$need" ] || exit {_NO_SPACE}
for folder; do
  if [ -e "$folder" ]; then
    mkdir -p ".roost/saved/.new/$(dirname -- "$folder")"
    cp -a -- "$folder" ".roost/saved/.new/$folder"
  fi
done
sync -f .roost/saved
mv .roost/saved/.new ".roost/saved/$name"
sync -f .roost/saved
"""
_RESTORE = f"""set -eu
cd "$HOME"
saved=.roost/saved/$1; shift
[ -d "$saved" ] || exit {_GONE}
for folder; do
  rm -rf -- "$folder"
  if [ -e "$saved/$folder" ]; then
    mkdir -p "$(dirname -- "$folder")"
    cp -a -- "$saved/$folder" "$folder"
  fi
done
"""


class StateBackupFailed(Problem):
    """The state could not be put aside, or not be put back."""

    kind = ProblemKind.FAILED
    message = "What the gateway remembers could not be copied"


async def save(warden: WardenClient, name: str, folders: Sequence[str]) -> None:
    """Put `folders` of the home aside under a name; what was put aside before is dropped. Raises StateBackupFailed.

    Can be done again after it was cut off, as long as the folders have not changed.
    """
    code = await _run(warden, _SAVE, name, folders)
    if code == _NO_SPACE:
        raise StateBackupFailed("There is not enough space to copy what the gateway remembers")
    if code:
        raise StateBackupFailed


async def restore(warden: WardenClient, name: str, folders: Sequence[str]) -> None:
    """Put back what was put aside; it stays aside as well, so this too can be done again. Raises StateBackupFailed."""
    code = await _run(warden, _RESTORE, name, folders)
    if code == _GONE:
        raise StateBackupFailed("The copy of what the gateway remembered is gone")
    if code:
        raise StateBackupFailed


async def _run(warden: WardenClient, script: str, name: str, folders: Sequence[str]) -> int:
    done = await warden.exec(["/bin/sh", "-c", script, "saved", name, *folders], timeout=SECONDS, output_limit=4096)
    return done.exit_code
