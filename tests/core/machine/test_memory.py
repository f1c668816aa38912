"""Memory: parsed from the kernel's text, and read on this machine."""

from roost.core.machine.memory import parse_meminfo, read_memory_use


def test_the_kernels_text_is_parsed() -> None:
    text = "MemTotal:        8000 kB\nMemAvailable:    4000 kB\nHugePages_Total:       0\n\nDirectMap2M:  12 kB\n"
    assert parse_meminfo(text) == {"MemTotal": 8_192_000, "MemAvailable": 4_096_000, "DirectMap2M": 12_288}


def test_this_machine_has_memory_and_this_process_some_of_it() -> None:
    used = read_memory_use()
    assert 0 < used.process < used.total
    assert 0 < used.available <= used.total
