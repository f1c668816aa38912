"""`roost signatures`: what is asked of the server, and what is shown of its answer."""

import json

from tests.cli.terminal import FakeServer

CID = "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"
SIGNED = {"cid": CID, "signature": "0xab"}


def test_signatures_are_added_shown_and_removed(server: FakeServer) -> None:
    one = f"/v3/files/public/signature/{CID}"
    server.answers[f"POST {one}"] = server.answers[f"GET {one}"] = (200, {"data": SIGNED})
    server.answers[f"DELETE {one}"] = (200, {"data": None})
    options = ("--address", "0xcd", "--signature", "0xab", "--public")
    assert server.run("signatures", "add", CID, *options).exit_code == 0
    assert server.bodies(f"POST {one}") == [{"signature": "0xab", "address": "0xcd"}]
    assert json.loads(server.run("signatures", "show", CID, "--public", "-o", "json").stdout) == SIGNED
    assert server.run("signatures", "delete", CID, "--public", "--yes").stdout == "Deleted.\n"
    assert server.run("signatures", "show", CID).exit_code == 5
    assert server.run("signatures", "add", CID).exit_code == 2
