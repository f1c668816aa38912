"""The rules of verdicts, as data.

`tests/agents/library/skills/verdict/examples.toml` has text that each rule must find, and text that it must not find.
"""

import hashlib
from collections.abc import Sequence

from roost.agents.library.skills.verdict.instruction_rules import INSTRUCTION_RULES
from roost.agents.library.skills.verdict.model import SkillRule, VerdictLevel, followed_by

CHECKS_REVISION = 2
"""Increases with each change of the functions that check content; stored verdicts are then made again."""

_REVIEW, _DANGEROUS = VerdictLevel.REVIEW, VerdictLevel.DANGEROUS

_SHELL = r"(?:sudo\s{1,4}(?:-\w{1,9}\s{1,4})?)?(?:/\w{1,9}){0,3}/?(?:ba|z|da|k|fi)?sh\b"
_INTERPRETER = rf"(?:{_SHELL}|(?:/usr/bin/)?(?:env\s{{1,4}})?(?:python[\d.]{{0,4}}|node|perl|ruby|php)\b)"
_DOWNLOAD = r"\b(?:curl|wget|fetch|iwr|invoke-webrequest)\b"
_PRIVATE_FILES = (
    r"(?:\.ssh/(?:id_|\*)|\.aws/credentials|\.netrc\b|\.gnupg/|\.kube/config|\.docker/config\.json|\.git-credentials"
    r"|\.config/gcloud/|\.npmrc\b|\.pypirc\b|/etc/shadow\b|login\.keychain|cookies\.sqlite|\blogin data\b"
    r"|\bwallet\.dat\b|\.electrum/|\bkey4\.db\b)"
)
_ENGINE_FILES = (
    r"(?:\.openclaw/openclaw\.json|auth-profiles\.json|\.openclaw/credentials|\.hermes/(?:\.env|auth\.json))"
)
_CREDENTIAL_NAMES = """
    .ssh/ .aws/ .netrc .gnupg .kube/ .docker/ .git-credentials gcloud .npmrc .pypirc /etc/shadow keychain cookies.sqlite
    wallet.dat .electrum key4.db openclaw auth-profiles .hermes
""".split()
_CREDENTIAL_WORDS = ("login data", *_CREDENTIAL_NAMES)
_READS = r"(?:\bcat\b|\bcp\b|\btar\b|\bzip\b|\bscp\b|\brsync\b|\bbase64\b|\bcurl\b|\bopen\(|\bread\w{0,12}\(|\bxxd\b)"
_SENDS = r"(?:\bcurl\b|\bwget\b|\bnc\b|\bncat\b|requests\.post|urlopen\(|fetch\(|https?://|\bsendall\(|axios|\|\s{0,4}base64)"

_DECODES = (
    r"\b(?:base64\s{1,4}(?:-d|-D|--decode)|xxd\s{1,4}-r|"
    + followed_by(r"openssl\s{1,4}(?:enc|base64)\b", 60, "|")
    + "-d)"
)

RULES: Sequence[SkillRule] = (
    SkillRule(
        "bidirectional-text", _DANGEROUS, "Characters that reorder text, so that people read other text than programs."
    ),
    SkillRule(
        "hidden-characters",
        _DANGEROUS,
        "Invisible tag characters or variation selectors that can carry hidden instructions.",
    ),
    SkillRule("zero-width", _REVIEW, "Zero-width characters inside words, which hide words from searches."),
    SkillRule("homoglyphs", _DANGEROUS, "Words of Latin letters mixed with letters of other scripts that look alike."),
    SkillRule(
        "executable-content",
        _DANGEROUS,
        "A compiled program (ELF, PE, Mach-O, WebAssembly, Java, Python bytecode), which cannot be reviewed.",
    ),
    SkillRule("nested-archive", _REVIEW, "An archive within the skill, which is not searched."),
    SkillRule("binary-content", _REVIEW, "Binary content of an unknown kind, or text in an unusual encoding."),
    SkillRule(
        "misplaced-script",
        _REVIEW,
        "A script under the name of a document, an image or data, or a command that runs one.",
        (
            rf"(?:^|[\s`;&|]){_INTERPRETER}\s{{1,4}}[\w./-]{{1,120}}\.(?:md|txt|png|jpe?g|gif|webp|ico|pdf|csv|log|svg)(?:$|[\s`;&|])",
        ),
        (".md", ".txt", ".png", ".jp", ".gif", ".webp", ".ico", ".pdf", ".csv", ".log", ".svg"),
    ),
    SkillRule("encoded-block", _REVIEW, "A long run of base64 or hexadecimal digits in text."),
    SkillRule(
        "unchecked-content", _DANGEROUS, "Text beyond the size or the CPU time of a check: its content is unknown."
    ),
    SkillRule(
        "download-to-shell",
        _DANGEROUS,
        "A download that is run without being looked at.",
        (
            followed_by(_DOWNLOAD, 400, "|") + rf"\|\s{{0,8}}(?:\w{{1,12}}\s[^|\n]{{0,80}}\|\s{{0,8}})?{_INTERPRETER}"
            r"(?!\s{1,4}-(?:m\s{1,4}json|c\b|e\b))",
            rf"\b(?:eval|source|{_SHELL}\s{{1,4}}-c)\s{{0,4}}[\"']?(?:\$\(|`|<\()\s{{0,4}}{_DOWNLOAD}",
            rf"{_SHELL}\s{{0,4}}<\(\s{{0,4}}{_DOWNLOAD}",
            followed_by(r"\b(?:exec|eval)\s{0,4}\(", 80)
            + r"(?:urlopen|requests\.get|httpx\.get|urlretrieve|fetch)\s{0,4}\(",
            followed_by(r"\b(?:iex|invoke-expression)\b", 80) + r"(?:downloadstring|iwr|invoke-webrequest|irm\b)",
            followed_by(r"\b(?:iwr|irm|invoke-webrequest)\b", 200, "|") + r"\|\s{0,4}(?:iex|invoke-expression)\b",
        ),
        """
        curl wget fetch iwr irm invoke- urlopen requests.get httpx.get urlretrieve iex
        """.split(),
    ),
    SkillRule(
        "download-and-run",
        _DANGEROUS,
        "A downloaded file that is made executable or run on the same line.",
        (
            followed_by(_DOWNLOAD, 300) + r"(?:&&|;)\s{0,4}chmod\s{1,4}(?:\+x|[0-7]{0,2}7[0-7]{1,2})\b",
            followed_by(_DOWNLOAD, 300)
            + rf"(?:&&|;)\s{{0,4}}(?:{_SHELL}|python[\d.]{{0,4}}|node)\s{{1,4}}(?:/tmp/|\./|/var/tmp/)",
        ),
        ("curl", "wget", "fetch", "iwr", "invoke-"),
    ),
    SkillRule(
        "decode-and-run",
        _DANGEROUS,
        "Encoded text that is decoded and run.",
        (
            followed_by(_DECODES, 120, "|") + rf"\|\s{{0,8}}{_INTERPRETER}",
            followed_by(r"\b(?:exec|eval)\s{0,4}\(", 80)
            + r"(?:b64decode|a85decode|unhexlify|fromhex|zlib\.decompress|marshal\.loads|atob|codecs\.decode)\s{0,4}\(",
            r"\beval\s{0,4}\(\s{0,4}buffer\.from\s{0,4}\(",
            followed_by(rf"\b(?:eval|{_SHELL}\s{{1,4}}-c)\s{{0,4}}[\"']?(?:\$\(|`)", 200, ")`")
            + r"base64\s{1,4}(?:-d|--decode)",
            followed_by(r"\bpowershell\b", 80) + r"\s-e(?:nc|ncodedcommand)?\s{1,4}[A-Za-z0-9+/=]{20}",
        ),
        """
        base64 xxd openssl b64decode a85decode unhexlify fromhex decompress marshal atob codecs buffer.from
        powershell
        """.split(),
    ),
    SkillRule(
        "reverse-shell",
        _DANGEROUS,
        "A shell that another machine controls.",
        (
            r"/dev/(?:tcp|udp)/",
            followed_by(r"\b(?:nc|ncat|netcat)\b", 80, "|;") + r"\s-\w{0,4}[ec]\b\s{0,4}\S{0,20}sh\b",
            followed_by(r"\bmkfifo\b", 120) + r"\b(?:nc|ncat|netcat|telnet)\b",
            r"\bos\.dup2\s{0,4}\([^\n]{0,40}fileno\(\)",
            r"\bpty\.spawn\s{0,4}\(",
            followed_by(r"\bsocat\b", 120) + r"\bexec:",
        ),
        ("/dev/tcp", "/dev/udp", "nc", "netcat", "mkfifo", "os.dup2", "pty.spawn", "socat"),
    ),
    SkillRule(
        "credential-theft",
        _DANGEROUS,
        "Reads files with credentials, or sends them away.",
        (
            followed_by(_READS, 120) + _PRIVATE_FILES,
            followed_by(_PRIVATE_FILES, 120) + _SENDS,
            followed_by(_READS, 120) + followed_by(_ENGINE_FILES, 200) + _SENDS,
            followed_by(_SENDS, 200) + _ENGINE_FILES,
            r"/proc/(?:self|\d{1,7}|\*|\$\$|\$\w{1,20})/environ\b",
            r"/run/secrets/|/var/run/secrets/",
            followed_by(r"(?:\bprintenv\b|\benv\b|\bset\b|\bexport\s{1,4}-p)\s{0,4}\|", 120)
            + r"(?:\bcurl\b|\bnc\b|\bwget\b|\bbase64\b)",
            followed_by(r"\bcurl\b", 200) + r"(?:\$\(\s{0,4}|`)(?:env|printenv)\b",
            followed_by(r"(?:requests\.post|urlopen|fetch|axios\.post|httpx\.post)\s{0,4}\(", 200)
            + r"(?:os\.environ(?!\.get|\[)|process\.env(?![.\[]))",
            r"169\.254\.169\.254|metadata\.google\.internal",
        ),
        (*_CREDENTIAL_WORDS, "/environ", "/secrets/", "env", "169.254.", "metadata.google"),
    ),
    SkillRule(
        "credential-files",
        _REVIEW,
        "Names files that hold credentials of the person or of the engine.",
        (_PRIVATE_FILES, _ENGINE_FILES),
        _CREDENTIAL_WORDS,
    ),
    SkillRule(
        "environment-dump",
        _REVIEW,
        "Prints or copies the whole environment, which has the agent's secrets.",
        (
            r"(?:^\s{0,12}(?:\$\s)?|[`;&|(]\s{0,4})(?:printenv|env)\s{0,4}(?:$|[`|>)])",
            r"\b(?:json\.dumps?|print|str|dict|repr)\s{0,4}\(\s{0,4}(?:dict\s{0,4}\(\s{0,4})?os\.environ\s{0,4}[,)]",
            r"\b(?:json\.stringify|console\.log)\s{0,4}\(\s{0,4}process\.env\s{0,4}[,)]",
        ),
        ("env",),
    ),
    SkillRule(
        "install-as-root",
        _REVIEW,
        "Runs commands as root.",
        (
            r"(?:^\s{0,12}(?:[$>#*-]\s{1,3})?|[`;&|(]\s{0,4}|\brun\s)(?:sudo|doas|pkexec)\s{1,4}[\w./-]",
            r"(?:^|[\s`;&|])su\s{1,4}-(?:\s|c\b|$)",
        ),
        ("sudo", "doas", "pkexec", "su -"),
    ),
    SkillRule(
        "install-software",
        _REVIEW,
        "Installs software for all programs, from a registry or an address.",
        (
            followed_by(r"\b(?:npm|pnpm)\s{1,4}(?:i|install|add)\b", 80, "`") + r"\s(?:-g|--global)\b",
            r"\b(?:npm|pnpm)\s{1,4}(?:-g|--global)\s{1,4}(?:i|install|add)\b",
            r"\byarn\s{1,4}global\s{1,4}add\b",
            r"\bpip[\d.]{0,4}\s{1,4}install\b",
            r"\bpipx\s{1,4}install\b",
            r"\buv\s{1,4}tool\s{1,4}install\b",
            r"\b(?:apt|apt-get|dnf|yum|apk|pacman)\s{1,4}(?:-\w{1,12}\s{1,4})?(?:install|add|-S)\b",
            r"\b(?:cargo|gem)\s{1,4}install\b",
            r"\bgo\s{1,4}install\s{1,4}[\w./-]{1,200}@",
        ),
        ("npm", "yarn", "pip", "uv tool", "apt", "dnf", "yum", "apk", "pacman", "cargo", "gem ", "go install"),
    ),
    SkillRule(
        "raw-address",
        _REVIEW,
        "A URL with a numeric address in place of a name.",
        (
            r"\b(?:https?|ftp|wss?)://(?:[^\s/@]{1,80}@)?(?!127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}\b",
            r"\bhttps?://(?:0x[0-9a-f]{8}|\d{8,10})(?:[/:?]|$)",
        ),
        ("://",),
    ),
    SkillRule(
        "collector-address",
        _DANGEROUS,
        "A service whose use is to collect what others send: request bins and callback hosts.",
        (
            r"\b(?:webhook\.site|requestbin\.\w{2,6}|[\w-]{1,64}\.m\.pipedream\.net|hookbin\.com|beeceptor\.com|requestcatcher\.com|burpcollaborator\.net|oastify\.com|interact\.sh|[\w-]{1,64}\.oast\.\w{2,6}|canarytokens\.\w{2,6}|dnslog\.cn)\b",
        ),
        """
        webhook.site requestbin pipedream hookbin beeceptor requestcatcher burpcollaborator oastify interact.sh
        .oast. canarytokens dnslog
        """.split(),
    ),
    SkillRule(
        "relay-address",
        _REVIEW,
        "A webhook, a paste service, a file drop, a tunnel or a link shortener.",
        (
            r"\bhooks\.slack\.com/services/\w",
            r"\bdiscord(?:app)?\.com/api/webhooks/\d",
            r"\bapi\.telegram\.org/bot\d",
            r"\b(?:pastebin\.com/(?:raw/)?\w{4,12}|paste\.ee/|hastebin\.com/|ghostbin\.|rentry\.co/|glot\.io/snippets/)",
            r"\b(?:transfer\.sh|0x0\.st|file\.io|termbin\.com|catbox\.moe|gofile\.io|anonfiles\.com)\b",
            r"\b[\w-]{1,64}\.(?:ngrok(?:-free)?\.(?:io|app|dev)|trycloudflare\.com|loca\.lt|serveo\.net|localhost\.run|onion)\b",
            r"\bhttps?://(?:bit\.ly|tinyurl\.com|is\.gd|t\.ly|cutt\.ly|rb\.gy)/\w",
        ),
        """
        hooks.slack /webhooks/ telegram.org/bot paste hastebin ghostbin rentry glot.io transfer.sh 0x0.st file.io
        termbin catbox anonfiles ngrok trycloudflare loca.lt serveo localhost.run .onion bit.ly tinyurl is.gd t.ly
        rb.gy
        """.split(),
    ),
    SkillRule(
        "obfuscated-code",
        _REVIEW,
        "Code that spells text by character codes or escapes.",
        (
            r"(?:\\x[0-9a-f]{2}){16}",
            r"(?:\\u00[0-9a-f]{2}){12}",
            r"(?:\\[0-3][0-7]{2}){16}",
            r"\bfromcharcode\s{0,4}\((?:\s{0,4}(?:0x)?[0-9a-f]{1,4}\s{0,4},){8}",
            r"(?:\bchr\s{0,4}\(\s{0,4}(?:0x)?[0-9a-f]{1,4}\s{0,4}\)\s{0,4}[+.]\s{0,4}){6}",
            r"\[(?:\s{0,4}\d{2,3}\s{0,4},){24}",
            r"\$'(?:\\[x0-7][0-9a-f]{1,3}){6}",
            r"\bgetattr\s{0,4}\(\s{0,4}__import__\s{0,4}\(",
            r"\b__import__\s{0,4}\(\s{0,4}['\"]\w{1,20}['\"]\s{0,4}\)\s{0,4}\.\s{0,4}(?:system|popen|exec)",
        ),
        ("\\x", "\\u00", "\\0", "\\1", "fromcharcode", "chr(", "chr (", "[", "$'", "__import__"),
    ),
    SkillRule(
        "destructive-command",
        _DANGEROUS,
        "Destroys all files of a person, or a disk.",
        (
            r"\brm\s{1,4}(?:-\w{1,8}\s{1,4}){1,3}(?:--no-preserve-root\s{1,4})?[\"']?(?:/|~|\$home|/\*|~/\*)[\"']?(?=$|[\s;&|`)])",
            followed_by(r"\bdd\s", 80) + r"\bof=/dev/(?:sd|nvme|hd|vd|xvd|disk)",
            r"\bmkfs\.\w{2,5}\s{1,4}/dev/",
            r":\(\)\s{0,4}\{\s{0,4}:\s{0,4}\|\s{0,4}:\s{0,4}&",
            r"\bshutil\.rmtree\s{0,4}\(\s{0,4}(?:[\"'](?:/|~)[\"']|(?:os\.path\.expanduser\(\s{0,4}[\"']~[\"']|path\.home\())",
        ),
        ("rm ", "dd ", "mkfs", ":()", ":( )", "rmtree"),
    ),
    SkillRule(
        "persistence",
        _REVIEW,
        "Makes itself run again: start files of shells, crontabs, services, authorized keys.",
        (
            r">>?\s{0,4}[\"']?(?:~|\$home|\$\{home\})/\.(?:bashrc|zshrc|profile|bash_profile|zprofile|zshenv)\b",
            r"\bauthorized_keys\b",
            r"\|\s{0,4}crontab\s{1,4}-(?:$|[\s`;&|])",
            r">>?\s{0,4}/etc/(?:cron|systemd|init|rc|profile|ld\.so|sudoers)",
            r"\blaunchctl\s{1,4}(?:load|bootstrap)\b|\bsystemctl\s{1,4}(?:--user\s{1,4})?enable\b",
        ),
        ("bashrc", "zshrc", "profile", "zshenv", "authorized_keys", "crontab", "/etc/", "launchctl", "systemctl"),
    ),
    SkillRule(
        "locked-archive",
        _REVIEW,
        "An archive with a password, which keeps it from being searched.",
        (
            followed_by(r"\b(?:unzip|7z|7za|unrar)\b", 60) + r"\s-p\s{0,2}\S",
            r"\bunzip\s{1,4}-P\s{1,4}\S",
            followed_by(r"\b(?:archive|zip|rar|7z)\b", 60) + r"\bpass(?:word|code)?\s{0,4}(?:is\b|:|=)",
        ),
        ("zip", "7z", "rar", "archive"),
    ),
    *INSTRUCTION_RULES,
)


def rules_version(rules: Sequence[SkillRule] = RULES) -> str:
    """Return the version of the rules, which changes with each of them."""
    text = repr([(rule.id, rule.level.value, rule.patterns, tuple(rule.triggers)) for rule in rules])
    return f"{CHECKS_REVISION}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
