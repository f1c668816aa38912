"""Arguments that many commands have."""

from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from roost.cli.completion import complete_agents

AgentName = Annotated[
    str, typer.Argument(metavar="AGENT", help="The agent's id or name.", autocompletion=complete_agents)
]


def optional_agent(default: str) -> Any:
    """Declare the argument of a command whose agent can be left out."""
    help_text = f"The agent's id or name (default: {default})."
    return typer.Argument(metavar="AGENT", help=help_text, autocompletion=complete_agents)


class PassThroughCommand(TyperCommand):
    """A command whose first argument is AGENT, and whose others are a command in it, with options of their own.

    Its own options stand before or behind AGENT; the first other word, or `--`, begins the agent's command.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        has_value = {
            name: not option.is_flag
            for option in self.get_params(ctx)
            if isinstance(option, TyperOption)
            for name in (*option.opts, *option.secondary_opts)
        }
        options, agent, rest = list[str](), list[str](), list(args)
        while rest and rest[0] != "--" and (rest[0].startswith("-") or not agent):
            word = rest.pop(0)
            if not word.startswith("-"):
                agent.append(word)
                continue
            options.append(word)
            if has_value.get(word) and rest:
                options.append(rest.pop(0))
        ctx.allow_interspersed_args = False
        return super().parse_args(ctx, [*options, *agent, *rest])
