"""Run a program that the kernel ends when the process that started it ends. `launcher.py PARENT PROGRAM ARGUMENTS`.

A program of its own, standard library only: between `fork` and `exec` of a process with threads, Python cannot run.
"""

import ctypes
import os
import signal
import sys

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, linux/prctl.h


def main(parent: int, program: list[str]) -> None:
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() == parent:  # else it ended before the call above
        os.execv(program[0], program)  # noqa: S606 - there is no shell


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
