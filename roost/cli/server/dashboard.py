"""`roost dashboard`: opens the dashboard in a browser, signed in by a link that works once; signs browsers out."""

import sys
import webbrowser
from typing import Annotated

import typer

from roost.cli.client.session import Data, load_session
from roost.cli.output.output import error_console, print_line
from roost.identity.caller import Role

_TERMINAL_BROWSERS = (webbrowser.GenericBrowser, webbrowser.Elinks)
"""Browsers that would take over the terminal; those of a desktop are subclasses."""


def open_dashboard(
    role: Annotated[
        Role, typer.Option(help="Rights of who opens the link; an editor manages no keys and deletes no agents.")
    ] = Role.OWNER,
    print_url: Annotated[
        bool, typer.Option("--print", help="Print the link instead of opening it; it works once, for 10 minutes.")
    ] = False,
    sign_out: Annotated[
        bool, typer.Option("--sign-out", help="Sign out all browsers that this key signed in; open none.")
    ] = False,
    data: Data = None,
) -> None:
    """Open the dashboard in a browser, signed in by a link that works once."""
    server = load_session(data)
    absent = f"The server at {server.url} has no dashboard."
    if sign_out:
        answer = server.call("DELETE", "/v0/session/all", not_found=absent)
        print_line(f"Browser sessions ended: {answer['ended']}")
        if agents := answer.get("agentIds"):
            print_line(f"They have read the gateway tokens of these agents, which still work: {', '.join(agents)}.")
        return
    link = server.call("POST", "/v0/session/links", {"role": role}, not_found=absent)["url"]
    if print_url:
        sys.stdout.write(f"{link}\n")
    else:
        show_link(link, f"{link.partition('/login#')[0]}/", "10 minutes", is_open=open_window(link))


def show_link(link: str, page: str, lifetime: str, *, is_open: bool) -> None:
    """Say that a page was opened, or print the link to it."""
    if is_open:
        print_line(f"Opened {page}")
    else:
        print_line(f"No browser was found. Open this link in one; it works once, for {lifetime}:", error_console)
        sys.stdout.write(f"{link}\n")


def open_window(url: str) -> bool:
    """Open a URL in a browser of the desktop and return whether there is one."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    return type(browser) not in _TERMINAL_BROWSERS and browser.open(url)
