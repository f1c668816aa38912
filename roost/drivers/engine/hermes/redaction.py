"""Removes credentials from a YAML file without parsing it, because parsing hostile YAML is expensive. Pure."""

import re

from roost.drivers.engine.abilities.saved_state import is_secret

_SETTING = re.compile(r"""(\s*(?:-\s+)*["']?([\w.-]+)["']?\s*:)(?:[ \t]++(.*))?""")
_INNER_SETTING = re.compile(r"""(?<![\w.-])([\w.-]++)["']?\s*+:(?=\s*["']?([^\s"']))""")
_ONE_LINE = re.compile(r"""("[^"]*"|'[^']*'|[^\s"'|>&*!\[{][^{}]*|\$\{\w+\})(?:(?<!\s)\s++#.*)?""")


def redact_yaml(content: bytes) -> bytes | None:
    """Return the file with empty values for credentials; None if one is in a form that lines do not show."""
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError:
        return None
    redacted: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        found = _SETTING.fullmatch(line.rstrip())
        if found is None or (found[3] or "").startswith(("{", "[")):
            if line.lstrip().startswith("? ") or any(is_secret(*setting) for setting in _INNER_SETTING.findall(line)):
                return None
            redacted.append(line)
            continue
        start, name, value = found[1], found[2], found[3] or ""
        single = _ONE_LINE.fullmatch(value)
        if is_secret(name, "any") and (_indent(following) > _indent(line) or (value and not single)):
            return None
        is_credential = single is not None and is_secret(name, single[1].strip("\"'"))
        redacted.append(f'{start} ""' if is_credential else line)
    return "".join(f"{line}\n" for line in redacted).encode()


def _indent(line: str) -> int:
    """Return the indentation of a line, -1 for an empty one."""
    return len(line) - len(line.lstrip()) if line.strip() else -1
