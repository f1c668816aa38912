"""Save the state of a gateway before an update, and restore it when the update fails.

The copy is made in the container, so links and names that an agent left there lead nowhere else. The agent can damage
the copy, as it can the state itself. Only the copy of the last update is kept, in `.roost/saved` of the home.
"""

from collections.abc import Sequence

from roost.core.problem import Problem
from roost.warden_client.client import WardenClient

TIMEOUT_SECONDS = 600.0
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
    """The state could not be saved or restored."""

    message = "The gateway's state could not be copied"


async def save_state(warden: WardenClient, name: str, folders: Sequence[str]) -> None:
    """Copy `folders` of the home under a name, and delete earlier copies. Raises StateBackupFailed.

    Can be repeated after an interruption, as long as the folders have not changed.
    """
    code = await _run(warden, _SAVE, name, folders)
    if code == _NO_SPACE:
        raise StateBackupFailed("There is not enough space to copy the gateway's state")
    if code:
        raise StateBackupFailed


async def restore_state(warden: WardenClient, name: str, folders: Sequence[str]) -> None:
    """Restore the folders and keep the copy, so that this can be repeated. Raises StateBackupFailed."""
    code = await _run(warden, _RESTORE, name, folders)
    if code == _GONE:
        raise StateBackupFailed("The copy of the gateway's state is gone")
    if code:
        raise StateBackupFailed


async def _run(warden: WardenClient, script: str, name: str, folders: Sequence[str]) -> int:
    result = await warden.exec(
        ["/bin/sh", "-c", script, "saved", name, *folders], timeout=TIMEOUT_SECONDS, output_limit=4096
    )
    return result.exit_code
