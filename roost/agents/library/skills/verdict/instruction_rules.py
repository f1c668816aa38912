"""The rules of verdicts about prose that instructs the agent against its owner, as data."""

from collections.abc import Sequence

from roost.agents.library.skills.verdict.model import SkillRule, VerdictLevel, followed_by

_REVIEW, _DANGEROUS = VerdictLevel.REVIEW, VerdictLevel.DANGEROUS

_PERSON = r"(?:the (?:user|human|owner)|your (?:user|human|owner|operator))"

INSTRUCTION_RULES: Sequence[SkillRule] = (
    SkillRule(
        "identity-files",
        _REVIEW,
        "Writes to the files that define the agent's character or memory.",
        (
            r"(?:>>?|\btee\s{1,4}(?:-a\s{1,4})?)\s{0,4}[\"']?[\w~./${}-]{0,80}(?:soul|identity|agents|memory|heartbeat|bootstrap)\.md\b",
            r"\bopen\s{0,4}\([^\n,)]{0,80}(?:soul|identity|agents|memory|heartbeat|bootstrap)\.md[\"']\s{0,4},\s{0,4}[\"'][wa]",
            r"\b(?:append|write|add|insert|copy|paste)\b[^\n.]{0,60}\b(?:to|into|in)\b[^\n.]{0,30}\b(?:soul|identity)\.md\b",
        ),
        ("soul.md", "identity.md", "agents.md", "memory.md", "heartbeat.md", "bootstrap.md"),
    ),
    SkillRule(
        "prompt-override",
        _DANGEROUS,
        "Tells the agent to drop its instructions or its limits.",
        (
            (
                followed_by(r"\b(?:ignore|disregard|forget|override)\b", 24, ".")
                + r"\b(?:previous|prior|above|earlier|preceding|existing|system|safety|your|all)\b[^\n.]{0,24}"
                r"\b(?:instructions?|prompts?|guidelines|rules|directives)\b"
            ),
            r"\byou are (?:now )?(?:in )?(?:dan|developer mode|jailbroken|unrestricted|no longer bound)\b",
            r"\b(?:new|updated) system (?:prompt|instructions?)\s{0,4}:",
            r"<\|?(?:im_start|im_end|system)\|>|\[/?INST\]|<<SYS>>",
            (
                r"\b(?:bypass|disable|turn off|skip)\b[^\n.]{0,24}"
                r"\b(?:safety (?:checks?|filters?|rules)|guardrails|content (?:filter|policy)|approval prompts?)"
            ),
        ),
        (
            "ignore",
            "disregard",
            "forget",
            "override",
            "you are",
            "system prompt",
            "system instruction",
            "<|",
            "[inst]",
            "[/inst]",
            "<<sys",
            "bypass",
            "disable",
            "turn off",
            "skip",
        ),
    ),
    SkillRule(
        "concealment",
        _DANGEROUS,
        "Tells the agent to hide from the person what it does.",
        (
            (
                r"\b(?:do not|don't|don\u2019t|never|must not|without)\b[^\n.]{0,16}"
                r"\b(?:tell|inform|notify|alert|reveal|mention|show|disclos[ei])(?:ing|ng)?\b[^\n.]{0,40}"
                rf"\b{_PERSON}\b(?![^\n.]{{0,24}}\b(?:to|unless|until|before|if)\b)"
            ),
            rf"\b(?:hide|conceal|keep)\b[^\n.]{{0,40}}\bfrom\s{{1,4}}{_PERSON}\b",
            r"\bwithout the (?:user|human|owner)'?s? (?:knowing|knowledge|noticing)\b",
        ),
        ("the user", "the human", "the owner", "your "),
    ),
    SkillRule(
        "secret-request",
        _REVIEW,
        "Asks the agent to put secrets where others can read them.",
        (
            (
                followed_by(r"\b(?:send|post|upload|submit|forward|exfiltrate|e-?mail|paste|include)\b", 60, ".")
                + r"\b(?:api[ _-]?keys?|passwords?|private keys?|seed phrases?|mnemonics?|credentials|access tokens?"
                r"|session cookies)\b[^\n.]{0,60}\b(?:to|at|via|into)\b[^\n]{0,20}"
                r"(?:https?://|webhook|server|endpoint|channel|e-?mail)"
            ),
            r"\b(?:enter|provide|paste|type)\b[^\n.]{0,30}\b(?:seed phrase|mnemonic|private key|recovery phrase)\b",
        ),
        ("key", "password", "phrase", "mnemonic", "credential", "token", "cookie"),
    ),
    SkillRule(
        "hidden-comment",
        _REVIEW,
        "Instructions in a comment that a rendered page does not show.",
        (
            (
                followed_by("<!--", 400)
                + r"\b(?:ignore|execute|run (?:the|this)|curl|wget|you must|do not tell|password"
                r"|api[ _-]?key|secretly)\b"
            ),
            r"^\[//\]:\s{0,4}#\s{0,4}[(\"'][^\n]{0,400}\b(?:ignore|execute|run|curl|wget|must|secretly)\b",
        ),
        ("<!--", "[//]:"),
    ),
)
