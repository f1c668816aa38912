"""Arguments that many commands have."""

from typing import Annotated

import typer

from roost.cli.completion import complete_agents

AgentName = Annotated[
    str, typer.Argument(metavar="AGENT", help="The agent's id or name.", autocompletion=complete_agents)
]

PASS_THROUGH = {"allow_interspersed_args": False}
"""Context settings that leave options after AGENT to the command."""
