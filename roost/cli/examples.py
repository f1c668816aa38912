"""Examples of commands, which `--help` shows: under a command its own, under a noun the first of each verb.

A line is an example of the command that it runs. A test parses all, without running them.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

EXAMPLES: Sequence[str] = """
roost up
roost up --data /srv/roost --domain roost.example --tls
roost apply -f roost.yaml --plan
roost apply -f roost.yaml --yes
roost login https://agents.roost.example
pass show roost | roost login https://agents.roost.example --key - --name work
roost logout work
roost chat Ada
roost chat Ada "What is new?"
roost open Ada
roost dashboard
roost dashboard --role viewer --print
roost dashboard --sign-out
roost logs Ada
roost logs Ada -f --level warn
roost events -f --types agent,file.added
roost events --agent Ada -o json
roost exec Ada ls -la
roost exec --timeout 600 Ada python report.py
roost shell Ada
roost cp notes.md Ada:docs/
roost cp Ada:docs .
roost clone Ada
roost versions Ada
roost update Ada --check
roost update Ada --to 2026.9.6
roost move Ada --to bwrap
roost doctor
roost proxy-config caddy
roost scrub
roost migrate
roost facilitator --rpc https://sepolia.base.org
roost agents list
roost agents list -o yaml
roost agents create Ada --engine hermes --description "Reads books"
roost agents create --template reader --attach-secrets
roost agents show Ada -o json
roost agents update Ada --description "Reads articles" --emoji ""
roost agents status Ada
roost agents memory
roost agents engines
roost agents fork Ada Bea
roost agents fork Ada Bea --snapshot before-update
roost agents delete Ada --yes
roost agents restart Ada
roost agents token Ada
roost agents token Ada --rotate --yes
roost agents open Ada --print
roost agents export Ada -o ada.car
roost agents import ada.car --name "Ada 2"
roost agents logs Ada -f
roost agents exec Ada uptime
roost agents shell Ada
roost contexts list
roost contexts use work
roost contexts use local
roost contexts remove work
roost channels list Ada
roost channels set Ada telegram --bot-token-file token.txt --dm-policy pairing
roost channels approve Ada telegram 12345678
roost channels watch Ada
roost channels remove Ada telegram
roost conversations list Ada
roost conversations show Ada
roost conversations stop Ada chat-01k3zq
roost devices list Ada
roost devices approve Ada 0b6f1c1e
roost devices approve-all Ada
roost config show Ada
roost config set Ada openclaw.json
roost config validate Ada openclaw.json
roost engines list --available
roost engines install hermes
roost engines remove openclaw@2026.9.6
roost system show
roost system checks -o json
roost system engines
roost models list Ada
roost models connect Ada openai
roost models servers
roost models use Ada ollama/qwen3:8b
roost usage
roost usage Ada --days 7
roost hosts list
roost hosts remove 4f1d1c52
roost hub search pdf tables --limit 5
roost hub show @roost/sqlite-notes
roost hub install @roost/sqlite-notes --agent Ada
roost hub withdraw @ada/word-count
roost keys create --name laptop
roost keys create --name uploads --scope org:files:write
roost keys list -o json
roost keys revoke 0c5cf9b7 --yes
roost keys revoke 0c5cf9b7 --rotate-tokens
roost routes list Ada
roost routes set Ada /app=3000
roost routes set Ada --none
roost domains list Ada
roost domains add Ada --domain app.example.com --port 3000
roost domains challenge Ada app.example.com
roost domains verify Ada app.example.com
roost domains update Ada app.example.com --port 4000
roost domains remove Ada app.example.com
roost api routes -o json
roost api openapi
roost skills list --agent Ada
roost skills show word-count
roost skills add ./skills/word-count
roost skills versions word-count
roost skills publish word-count --category writing
roost skills delete word-count
roost skills attach Ada word-count @roost/sqlite-notes
roost skills detach Ada word-count
roost skills updates --apply
roost skills update Ada word-count --version 1.2.0
roost skills lint ./skills/word-count
roost skills rules
roost snapshots list Ada
roost snapshots sync Ada
roost snapshots status Ada
roost snapshots reset Ada
roost snapshots reset Ada before-update --state
roost snapshots diff Ada before-update bafybei notes.md
roost snapshots label Ada bafybei before-update
roost tasks list Ada
roost tasks create Ada daily "0 8 * * * Europe/Berlin" "Write down what was new."
roost tasks show Ada daily
roost tasks update Ada daily --schedule "0 7 * * *"
roost tasks delete Ada daily
roost tasks run Ada daily
roost tasks toggle Ada daily --off
roost tasks runs Ada daily --limit 5
roost templates list --search books
roost templates show reader
roost templates submit https://git.example/ada/reader.git --draft
roost templates update reader --publish
roost templates archive reader
roost templates check ./reader
roost templates validate https://git.example/ada/reader.git --ref v2
roost templates refs https://git.example/ada/reader.git
roost secrets list --agent Ada
roost secrets create OPENAI_API_KEY
roost secrets create REGION --variable --value-file region.txt
roost secrets update OPENAI_API_KEY --value-file key.txt
roost secrets delete OPENAI_API_KEY
roost secrets attach Ada OPENAI_API_KEY
roost secrets detach Ada OPENAI_API_KEY
roost secrets rotate-key
roost scripts show Ada
roost scripts retry Ada
roost files list --name report
roost files show bafkreih --public -o yaml
roost files upload report.pdf -k year=2026
roost files upload ./site --public
roost files update bafkreih --name final.pdf
roost files delete bafkreih
roost files get bafkreih --to report.pdf
roost files link bafkreih --expires 600
roost files upload-link --max-size 1000000 --mime-type "image/*"
roost files cid report.pdf
roost files usage
roost files totals
roost groups list
roost groups create reports
roost groups show 0192f0c1
roost groups update 0192f0c1 --name reports-2026
roost groups delete 0192f0c1
roost groups add 0192f0c1 0192f0d4
roost groups remove 0192f0c1 0192f0d4
roost gateways list
roost gateways create media
roost gateways show media
roost gateways delete media
roost gateways check media
roost gateways allow media --ip 10.0.0.0/8
roost gateways refuse media 10.0.0.0/8
roost gateways plugins
roost gateways install media 2
roost gateways uninstall media 2
roost gateways analytics media --by cid --days 7
roost gateways domains list media
roost gateways domains add media files.example.com
roost gateways domains update media files.example.com --cid bafybei
roost gateways domains verify media files.example.com
roost gateways domains remove media files.example.com
roost payments list --state settled
roost payments totals
roost payments instructions list
roost payments instructions create report --pay-to 0x52908400098527886E0F7030069857D2E4169EE7 --amount 0.10
roost payments instructions show 0192f0c1
roost payments instructions update 0192f0c1 --amount 0.20
roost payments instructions delete 0192f0c1
roost payments instructions cids 0192f0c1
roost payments instructions attach 0192f0c1 bafkreih
roost payments instructions detach 0192f0c1 bafkreih
roost pins add bafybei --name site
roost pins list --status searching
roost pins remove 0192f0c1
roost signatures add bafkreih --address 0x52908400098527886E0F7030069857D2E4169EE7 --signature 0x1b
roost signatures show bafkreih
roost signatures delete bafkreih
roost swaps set bafkreih bafkreia
roost swaps show bafkreih
roost swaps delete bafkreih
roost vectors add report.pdf
roost vectors add --group reports
roost vectors show --group reports
roost vectors query reports "What did it cost?" --limit 3
roost vectors remove report.pdf
roost vectors groups
roost vectors agents reports
roost vectors grant reports Ada
roost vectors revoke reports Ada
roost webhooks list
roost webhooks create https://hooks.example.com/roost --event ipfs.private.file_added
roost webhooks show 0192f0c1
roost webhooks update 0192f0c1 --disable
roost webhooks delete 0192f0c1
roost webhooks rotate-secret 0192f0c1
roost webhooks deliveries 0192f0c1 --state failed
roost webhooks redeliver 0192f0c1 0192f0d4
roost webhooks test 0192f0c1
roost workspace list Ada docs --recursive
roost workspace delete Ada docs/old.md
roost workspace move Ada notes.md docs/notes.md
roost workspace mkdir Ada docs/2026
roost workspace watch Ada
""".strip().splitlines()

_SHOWN_FOR_NOUN = 5


def add_examples(command: TyperCommand | TyperGroup, path: tuple[str, ...]) -> None:
    """Show examples below the help of a command and of all below it."""
    below: Mapping[str, Any] = getattr(command, "commands", {})
    command.epilog = escape("\n".join(["Examples:", *examples_of(path, is_noun=bool(below))]))
    for name, one in below.items():
        add_examples(one, (*path, name))


@cache
def command_words(example: str) -> Sequence[str]:
    """Return what follows `roost` in an example, which may be the end of a pipeline."""
    return shlex.split(example.rpartition("| ")[2])[1:]


def examples_of(path: Sequence[str], *, is_noun: bool) -> list[str]:
    """Return the examples of a command; of a noun the first of some verbs."""
    return list(islice(_first_of_each_verb(path), _SHOWN_FOR_NOUN)) if is_noun else list(_all_of(path))


def _all_of(path: Sequence[str]) -> Iterator[str]:
    return (example for example in EXAMPLES if command_words(example)[: len(path)] == list(path))


def _first_of_each_verb(path: Sequence[str]) -> Iterator[str]:
    seen = set[str]()
    for example in _all_of(path):
        verb = command_words(example)[len(path)]
        if verb not in seen:
            seen.add(verb)
            yield example
