"""The settings are those of a whole process, so each test looks at one of its own."""

import subprocess
import sys

SETTINGS = """
import gc, sys
from roost.core.machine import interpreter
kept = [object, [1]]
interpreter.shorten_thread_turns()
interpreter.freeze_heap()
visited = gc.get_objects()
print(sys.getswitchinterval() < 0.001, any(one is kept for one in visited), len(visited) < gc.get_freeze_count())
new = [kept]
new.append(new)
del new
print(gc.isenabled(), gc.collect() > 0)
"""


def test_a_collection_visits_new_objects_only_and_threads_switch_often() -> None:
    printed = subprocess.run([sys.executable, "-c", SETTINGS], capture_output=True, text=True, check=True, timeout=30)
    assert printed.stdout.split() == ["True", "False", "True", "True", "True"]
