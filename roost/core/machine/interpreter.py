"""Settings of the Python interpreter for a process that answers requests while its threads work."""

import gc
import sys

_SWITCH_SECONDS = 0.0005


def shorten_thread_turns() -> None:
    """Let a thread that computes give up the interpreter lock after 0.5 ms instead of 5.

    The event loop releases the lock at each of the ten to twenty system and SQLite calls of a request, and waits that
    long to get it back while another thread computes.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)


def freeze_heap() -> None:
    """Exempt all current objects from garbage collection: call it once, when the server is ready.

    A full collection stops all threads. It visits every object, of which modules and schemas are nearly all, and it
    takes place each time that enough new objects have outlived young collections, as the rows of a long list do.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, 100)  # full ones ten times as seldom: 10,000 new watches took half their time for ten
