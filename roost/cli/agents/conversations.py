"""`roost conversations ...`: list, show, stop: chats that agents' engines keep."""

from typing import Annotated
from urllib.parse import urlencode

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, load_session
from roost.cli.output.output import Output, OutputFormat, print_line, print_rows

commands = typer.Typer()


@commands.command("list")
def list_conversations(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the newest 100 conversations that the agent's engine keeps."""
    server = load_session(data)
    found = server.call("GET", f"{server.agent_path(agent)}/chat/conversations")["conversations"]
    print_rows(found, ("id", "title", "updatedAt"), output)


@commands.command()
def show(
    agent: AgentName,
    conversation: Annotated[
        str | None, typer.Argument(metavar="ID", help="Conversation (default: the newest one).")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Number of messages.")] = 100,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show the latest messages of a conversation, oldest first; as JSON with the tools that the agent used."""
    server = load_session(data)
    query = {"limit": str(limit), **({"conversationId": conversation} if conversation else {})}
    messages = server.call("GET", f"{server.agent_path(agent)}/chat/messages?{urlencode(query)}")["messages"]
    print_rows(messages, ("role", "text", "sentAt"), output)


@commands.command()
def stop(
    agent: AgentName,
    conversation: Annotated[str, typer.Argument(metavar="ID", help="Conversation whose answer is to end.")],
    data: Data = None,
) -> None:
    """Stop the answer that an agent writes; what it has written stays in the conversation."""
    server = load_session(data)
    answer = server.call("POST", f"{server.agent_path(agent)}/chat/stop", {"conversationId": conversation})
    print_line("The answer is stopped." if answer["stopped"] else "The agent writes no answer.")
