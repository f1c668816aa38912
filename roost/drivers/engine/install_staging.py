"""The temporary folder of an installation, and running installers (pip, npm) in it.

Progress comes from the lines of an installer's output; the last ones are kept for the error. Installed files are
readable by all users, independent of the server's umask.
"""

import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from roost.core.machine.network_advice import advise_network
from roost.drivers.engine.contract import EngineInstallFailed

_TIMEOUT_SECONDS = 1800.0
_LINE_BYTES = 4096
_TAIL_LINES = 15

OnLine = Callable[[str], None]


@dataclass(frozen=True)
class InstallStaging:
    """Temporary folder of an installation. lock: descriptor of the version folder's lock, inherited by installers."""

    path: Path
    lock: int

    def run(self, argv: Sequence[str], on_line: OnLine) -> None:
        """Run an installer. Raises EngineInstallFailed with its last lines."""
        tail: deque[str] = deque(maxlen=_TAIL_LINES)
        process = self._spawn(argv)
        alarm = threading.Timer(_TIMEOUT_SECONDS, process.kill)
        alarm.daemon = True
        alarm.start()
        try:
            code = _follow(process, tail, on_line)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            alarm.cancel()
        if code:
            raise _install_failed(f"{Path(argv[0]).name} exited with {code}", tail)

    def _spawn(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                argv,
                cwd=self.path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(self.lock,),
                umask=0o022,
            )
        except OSError as error:
            raise EngineInstallFailed(f"The installer did not start: {error}") from error


def query_registry(argv: Sequence[str]) -> str:
    """Return the standard output of a registry client. Raises EngineInstallFailed."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineInstallFailed(f"The registry could not be queried: {error}") from error
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-5:]
        raise _install_failed("The registry could not be queried", last)
    return done.stdout.decode(errors="replace")


def _install_failed(message: str, last_lines: Iterable[str]) -> EngineInstallFailed:
    output = " | ".join(last_lines)
    advice = advise_network(output)
    return EngineInstallFailed(f"{message}: {output}" + (f". {advice}" if advice else ""))


def _follow(process: subprocess.Popen[bytes], tail: deque[str], on_line: OnLine) -> int:
    assert process.stdout is not None
    with process.stdout as output:
        while raw := output.readline(_LINE_BYTES):
            line = raw.decode(errors="replace").rstrip()
            on_line(line)
            if line and not line.startswith("npm http"):
                tail.append(line[:500])
    return process.wait()
