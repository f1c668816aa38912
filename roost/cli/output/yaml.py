"""Records as YAML for scripts.

Readers of YAML 1.1 and 1.2 differ in which plain texts are numbers or booleans, so a text that is one to any of them is
quoted: an id like `1234e567` stays a text.
"""

import re
from typing import Any

import yaml

from roost.core.yaml_document import YAML_1_1_LETTER, YAML_1_2_NUMBER

_RARE_BREAKS = re.compile("[\r\x85\u2028\u2029]")  # PyYAML would write them plainly, and read spaces


class _RecordDumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and repeats what occurs twice."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the method of the base class
        return True


def _represent_text(_: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _RARE_BREAKS.search(text) else "|" if "\n" in text else None
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=style)


_RecordDumper.add_representer(str, _represent_text)
_RecordDumper.add_implicit_resolver(  # pyright: ignore[reportUnknownMemberType] - PyYAML has no types
    "tag:yaml.org,2002:float", YAML_1_2_NUMBER, list("-+.0123456789")
)
_RecordDumper.add_implicit_resolver(  # pyright: ignore[reportUnknownMemberType] - PyYAML has no types
    "tag:yaml.org,2002:bool", YAML_1_1_LETTER, list("yYnN")
)


def render_yaml(value: Any, *, ascii_only: bool = False) -> str:
    """Return JSON's values as one document of YAML."""
    return yaml.dump(value, Dumper=_RecordDumper, sort_keys=False, allow_unicode=not ascii_only, width=120)
