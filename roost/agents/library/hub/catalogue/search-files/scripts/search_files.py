"""Search groups of files through the server of this agent."""

import argparse
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

API = "http://127.0.0.1:8799/v3/vectorize"
PAGE = 100
TIMEOUT_SECONDS = 60
INDENT = "    "


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("groups", help="list the groups that can be searched")
    for name, text in (("files", "list the files of a group"), ("index", "request what is not indexed yet")):
        commands.add_parser(name, help=text).add_argument("group", help="name or id")
    query = commands.add_parser("query", help="search a group")
    query.add_argument("group", help="name or id")
    query.add_argument("text")
    query.add_argument("--limit", type=int, default=5)
    options = parser.parse_args()
    try:
        run_command(options)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def run_command(options: argparse.Namespace) -> None:
    groups = call_api("GET", "/groups")["groups"]
    if options.command == "groups":
        for group in groups:
            print(f"{group['id']}  {group['name']}")
        if not groups:
            print("no groups: the owner grants one with `roost vectors grant`")
        return
    group_id = find_group(groups, options.group)
    if options.command == "query":
        search_group(group_id, options.text, options.limit)
        return
    for listed in list_files(group_id):
        is_due = options.command == "index" and listed["state"] not in ("indexed", "queued", "indexing")
        file = index_file(listed) if is_due else listed
        reason = f"  {file['reason']}" if file["reason"] else ""
        print(f"{file['state']:<8}  {file['name'] or file['cid']}{reason}")


def find_group(groups: Sequence[dict[str, Any]], name: str) -> str:
    found = [group["id"] for group in groups if name in (group["id"], group["name"])]
    if len(found) != 1:
        raise ValueError(f"{len(found)} groups are {name!r}; use the id of one")
    return quote(found[0], safe="")


def list_files(group_id: str) -> Sequence[dict[str, Any]]:
    files: list[dict[str, Any]] = []
    token = ""
    while True:
        page = call_api("GET", f"/groups/{group_id}/files?{urlencode({'limit': PAGE, 'pageToken': token})}")
        files += page["files"]
        token = page["next_page_token"]
        if not token:
            return files


def index_file(file: dict[str, Any]) -> dict[str, Any]:
    try:
        return call_api("POST", f"/files/{file['file_id']}")
    except ValueError as error:
        return {**file, "state": "failed", "reason": str(error)}


def search_group(group_id: str, text: str, limit: int) -> None:
    found = call_api("POST", f"/groups/{group_id}/query", {"text": text, "limit": limit})
    for match in found["matches"]:
        print(f"{match['score']:.3f}  {match['name'] or ''}  {match['cid']}")
        print("\n".join(INDENT + line for line in match["text"].splitlines()) + "\n")
    if not found["matches"]:
        print("nothing was found; `files` shows what is indexed")
    if found["outdated_files"]:
        print(f"{found['outdated_files']} files are left out until `index` is run")


def call_api(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """Request the server, past any proxy, and return the data of its answer. Raises ValueError with its message."""
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(API + path, content, {"Content-Type": "application/json"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT_SECONDS) as response:
            return json.load(response)["data"]
    except urllib.error.HTTPError as error:
        try:
            message = json.load(error)["error"]["message"]
        except (ValueError, KeyError, TypeError):
            message = f"the server answered {error.code}"
        raise ValueError(message) from None


if __name__ == "__main__":
    sys.exit(main())
