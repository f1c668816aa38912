"""The `manifest.json` of a template, version 1: what an agent is made of, apart from its files.

A manifest is untrusted. It may have the forms that are documented and those that repositories use: a model as text or
as an object with `primary`, a task with a prompt and a cron expression, `partnerName` for `authorName`. All become the
same `TemplateManifest`. Unknown fields are ignored, with a warning. Nothing here knows HTTP or a database.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, TypeVar, cast

from pydantic import AfterValidator, AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from roost.agents.network.routes.model import check_port, parse_prefix
from roost.agents.registry.model import DESCRIPTION_LIMIT, EMOJI_LIMIT, NAME_LIMIT, VIBE_LIMIT, validate_agent_name
from roost.agents.setup.channels.model import ALLOW_FROM_LIMIT, ID_LIMIT
from roost.agents.setup.secrets.model import NAME_LIMIT as SECRET_NAME_LIMIT
from roost.agents.setup.secrets.model import SecretKind, validate_secret_name
from roost.agents.setup.tasks.model import DESCRIPTION_LIMIT as TASK_DESCRIPTION_LIMIT
from roost.agents.setup.tasks.model import NAME_LIMIT as TASK_NAME_LIMIT
from roost.agents.setup.tasks.model import TASK_LIMIT, InvalidTaskParameters, parse_new_task
from roost.agents.setup.tasks.schedules import InvalidSchedule, parse_schedule
from roost.agents.setup.tasks.schemas import (
    CreateTaskRequest,
    PayloadRecord,
    ScheduleRecord,
    TaskDeliveryRecord,
    schedule_record,
    task_record,
)
from roost.agents.workspace.scripts.model import (
    MANIFEST_LIMIT,
    MANIFEST_PATH,
    InvalidManifest,
    decode_manifest,
    parse_script,
)
from roost.core.problem import Problem
from roost.core.sanitize import is_storable
from roost.drivers.engine.abilities.tasks import AGENT_TURN, Task
from roost.drivers.runtime.contract import WARDEN_PORTS

T = TypeVar("T")
R = TypeVar("R")

SECRETS_LIMIT, SKILLS_LIMIT, ROUTES_LIMIT, TAGS_LIMIT = 30, 10, 10, 10
SLUG_LIMIT, CATEGORY_LIMIT, AUTHOR_LIMIT, URL_LIMIT = 100, 50, 100, 2048
SLUG_PATTERN = "^[a-z0-9]+(?:-[a-z0-9]+)*$"
DEFAULT_CATEGORY = "other"
FAULTS_LIMIT = 50
"""Maximum number of errors, and of warnings, reported for one manifest."""
_TEXT_LIMIT, _STEPS_LIMIT = 500, 10
_SILENT_FIELDS = frozenset({"$schema"})


def check_text(text: str) -> str:
    """Return the text. Raises ValueError if it cannot be stored."""
    if not is_storable(text):
        raise ValueError("text must not contain NUL or lone surrogates")
    return text


def _raise_value_errors(check: Callable[[T], R]) -> Callable[[T], R]:
    """Let a check raise ValueError, which pydantic reports with the field, in place of a Problem."""

    def run_check(value: T) -> R:
        try:
            return check(value)
        except Problem as problem:
            raise ValueError(problem.message) from None

    return run_check


check_agent_name = _raise_value_errors(validate_agent_name)
check_secret_name = _raise_value_errors(validate_secret_name)


def _check_token(text: str) -> str:
    prefix, _, name = text.partition(":")
    if prefix != "env" or not name:
        raise ValueError("must be env: and the name of a secret; a token does not belong in a repository")
    return f"env:{check_secret_name(name)}"


def _primary_model(value: object) -> object:
    return cast("Mapping[str, object]", value).get("primary") if isinstance(value, dict) else value


def parse_schedule_text(value: object) -> object:
    """Return the schedule of a text, and other values as they are. Raises ValueError."""
    try:
        return schedule_record(parse_schedule(value)) if isinstance(value, str) else value
    except InvalidSchedule:
        raise ValueError("must be a cron expression or a time ahead, at most once a minute") from None


def _parse_prompt(value: object) -> object:
    return PayloadRecord(kind=AGENT_TURN, message=value) if isinstance(value, str) else value


_Text = Annotated[str, AfterValidator(check_text)]
_LongText = Annotated[_Text, Field(max_length=_TEXT_LIMIT)]
_WebAddress = Annotated[_Text, Field(max_length=URL_LIMIT, pattern=r"^https?://[^\s<>\"'`\\]+$")]
_Script = Annotated[str | None, BeforeValidator(_raise_value_errors(lambda value: parse_script(value, "script")))]
_Token = Annotated[
    str | None, Field(max_length=SECRET_NAME_LIMIT + 4), AfterValidator(lambda text: text and _check_token(text))
]
_ChannelName = Literal["telegram", "slack", "discord", "whatsapp"]


class ManifestPart(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, frozen=True, strict=True
    )


class ManifestAgent(ManifestPart):
    name: Annotated[_Text, Field(max_length=NAME_LIMIT)]
    description: Annotated[_Text, Field(max_length=DESCRIPTION_LIMIT)] | None = None
    vibe: Annotated[_Text, Field(max_length=VIBE_LIMIT)] | None = None
    emoji: Annotated[_Text, Field(max_length=EMOJI_LIMIT)] | None = None


class ManifestTask(ManifestPart):
    """A scheduled task, with the fields that create one."""

    name: Annotated[_Text, Field(max_length=TASK_NAME_LIMIT)]
    schedule: ScheduleRecord
    payload: PayloadRecord
    description: Annotated[_Text, Field(max_length=TASK_DESCRIPTION_LIMIT)] | None = None
    enabled: bool = True
    delivery: TaskDeliveryRecord | None = None
    session_target: Literal["main", "isolated"] | None = None
    wake_mode: Literal["now", "next-heartbeat"] | None = None

    @classmethod
    def from_task(cls, task: Task) -> "ManifestTask":
        return cls.model_validate(task_record(task).model_dump(include=set(cls.model_fields)), strict=False)


class TemplateAgent(ManifestAgent):
    name: Annotated[_Text, AfterValidator(check_agent_name)]


class TemplateTask(ManifestTask):
    """A task; `schedule` may be text, and `prompt` the message of an agent's turn instead of `payload`."""

    schedule: Annotated[ScheduleRecord, BeforeValidator(parse_schedule_text)]
    payload: Annotated[
        PayloadRecord, BeforeValidator(_parse_prompt), Field(validation_alias=AliasChoices("payload", "prompt"))
    ]


class TemplateSecret(ManifestPart):
    """A secret that an agent of the template needs, without its value."""

    name: Annotated[str, Field(max_length=SECRET_NAME_LIMIT), AfterValidator(check_secret_name)]
    type: Annotated[SecretKind, Field(strict=False)] = SecretKind.SECRET
    description: _LongText | None = None
    guide_url: _WebAddress | None = None
    guide_steps: Annotated[Sequence[_LongText], Field(max_length=_STEPS_LIMIT)] = ()
    required: bool = True


class TemplateSkill(ManifestPart):
    """A skill, by exactly one of CID and slug."""

    cid: Annotated[_Text, Field(min_length=1, max_length=128)] | None = None
    clawhub_slug: Annotated[
        Annotated[_Text, Field(min_length=1, max_length=200)] | None, Field(alias="clawhub_slug")
    ] = None
    name: Annotated[_Text, Field(max_length=NAME_LIMIT)] | None = None


class TemplateScripts(ManifestPart):
    build: _Script = None
    start: _Script = None


class TemplateRoute(ManifestPart):
    """A path on the agent's address that leads to a port; `protected` ones need the gateway token."""

    port: Annotated[int, AfterValidator(_raise_value_errors(check_port))]
    path: Annotated[_Text, AfterValidator(_raise_value_errors(lambda path: parse_prefix(path) or "/"))]
    protected: bool = True


class TemplateChannel(ManifestPart):
    """Settings of a channel; a token is `env:` and the name of a secret. `closed` admits only `allow_from`."""

    enabled: bool = True
    dm_policy: Literal["open", "pairing", "closed"] = "pairing"
    allow_from: Annotated[
        Sequence[Annotated[_Text, Field(max_length=ID_LIMIT)]], Field(max_length=ALLOW_FROM_LIMIT)
    ] = ()
    bot_token: _Token = None
    app_token: _Token = None


class TemplateListing(ManifestPart):
    """How the template is listed; `paid` is ignored, because templates of an own server are free."""

    slug: Annotated[str, Field(max_length=SLUG_LIMIT, pattern=SLUG_PATTERN)] | None = None
    category: Annotated[_Text, Field(min_length=1, max_length=CATEGORY_LIMIT)] = DEFAULT_CATEGORY
    tags: Annotated[Sequence[Annotated[_Text, Field(min_length=1, max_length=50)]], Field(max_length=TAGS_LIMIT)] = ()
    author_name: Annotated[
        Annotated[_Text, Field(max_length=AUTHOR_LIMIT)] | None,
        Field(validation_alias=AliasChoices(to_camel("author_name"), to_camel("partner_name"))),
    ] = None
    author_url: Annotated[
        _WebAddress | None, Field(validation_alias=AliasChoices(to_camel("author_url"), to_camel("partner_url")))
    ] = None
    author_logo_url: Annotated[
        _WebAddress | None,
        Field(validation_alias=AliasChoices(to_camel("author_logo_url"), to_camel("partner_logo_url"))),
    ] = None


class TemplateManifest(ManifestPart):
    version: Literal[1]
    engine: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9-]{0,31}$")] | None = None
    agent: TemplateAgent
    model: Annotated[Annotated[_Text, Field(min_length=1, max_length=200)] | None, BeforeValidator(_primary_model)] = (
        None
    )
    secrets: Annotated[Sequence[TemplateSecret], Field(max_length=SECRETS_LIMIT)] = ()
    skills: Annotated[Sequence[TemplateSkill], Field(max_length=SKILLS_LIMIT)] = ()
    tasks: Annotated[Sequence[TemplateTask], Field(max_length=TASK_LIMIT)] = ()
    scripts: TemplateScripts = TemplateScripts()
    routes: Annotated[Sequence[TemplateRoute], Field(max_length=ROUTES_LIMIT)] = ()
    channels: Mapping[_ChannelName, TemplateChannel] = Field(default_factory=dict[_ChannelName, TemplateChannel])
    template: TemplateListing = TemplateListing()

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object; `from_document` reads it."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read a stored manifest without routes to ports of the warden, which earlier versions allowed."""
        routes = [route for route in document.get("routes", ()) if route["port"] not in WARDEN_PORTS]
        return cls.model_validate({**document, "routes": routes})


@dataclass(frozen=True)
class ManifestFault:
    """An error or warning; `path` names the field (`tasks.0.schedule`), empty for the whole manifest."""

    path: str
    message: str


@dataclass(frozen=True)
class ParsedManifest:
    """A manifest, or the errors for which there is none."""

    manifest: TemplateManifest | None
    errors: Sequence[ManifestFault] = ()
    warnings: Sequence[ManifestFault] = ()


def parse_template_manifest(raw: bytes) -> ParsedManifest:
    """Parse an untrusted manifest. Errors never quote its values."""
    if len(raw) > MANIFEST_LIMIT:
        message = f"{MANIFEST_PATH} is larger than {MANIFEST_LIMIT // 1024**2} MiB"
        return ParsedManifest(None, [ManifestFault("", message)])
    try:
        document = decode_manifest(raw)
        manifest = TemplateManifest.model_validate(document)
    except InvalidManifest as problem:
        return ParsedManifest(None, [ManifestFault("", problem.message)])
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False, include_context=False)[:FAULTS_LIMIT]
        return ParsedManifest(None, [_describe_fault(fault) for fault in faults])
    errors = list(_check_manifest(manifest))[:FAULTS_LIMIT]
    warnings = [*_list_unknown(manifest, document, ""), *_list_doubts(manifest)][:FAULTS_LIMIT]
    return ParsedManifest(None if errors else manifest, errors, warnings)


def _describe_fault(fault: Mapping[str, Any]) -> ManifestFault:
    path = ".".join(str(part) for part in fault["loc"])[:200]
    return ManifestFault(_printable(path), str(fault["msg"]).removeprefix("Value error, "))


def _check_manifest(manifest: TemplateManifest) -> Iterator[ManifestFault]:
    """Yield the errors that concern more than one field."""
    for number, task in enumerate(manifest.tasks):
        request = task.model_dump(mode="json", by_alias=True, exclude_none=True)
        try:
            parse_new_task(CreateTaskRequest.model_validate(request).to_fields())
        except InvalidTaskParameters:
            yield ManifestFault(f"tasks.{number}", "the schedule, the payload or the name is malformed")
    for number, skill in enumerate(manifest.skills):
        if (skill.cid is None) == (skill.clawhub_slug is None):
            yield ManifestFault(f"skills.{number}", "a skill has either cid or clawhub_slug")
    yield from _repeated("secrets", "name", [secret.name for secret in manifest.secrets])
    yield from _repeated("skills", "skill", [skill.cid or skill.clawhub_slug for skill in manifest.skills])
    yield from _repeated("routes", "path", [route.path.rstrip("/") for route in manifest.routes])


def _repeated(section: str, name: str, values: Sequence[object]) -> Iterator[ManifestFault]:
    for number, value in enumerate(values):
        if value is not None and value in values[:number]:
            yield ManifestFault(f"{section}.{number}", f"another entry has the same {name}")


def _list_unknown(part: BaseModel, document: object, path: str) -> Iterator[ManifestFault]:
    """Yield a warning for each field of the document that the part does not have."""
    if not isinstance(document, dict):  # a short form
        return
    fields = cast("dict[str, object]", document)
    known = {name: _field_names(name, field) for name, field in type(part).model_fields.items()}
    for name in fields.keys() - set[str]().union(*known.values()) - _SILENT_FIELDS:
        yield ManifestFault(_printable(f"{path}{name}"[:200]), "unknown field, ignored")
    for name, names in known.items():
        found = next((fields[one] for one in names if one in fields), None)
        for key, value, raw in _inner_parts(getattr(part, name), found):
            yield from _list_unknown(value, raw, f"{path}{name}.{key}")


def _field_names(name: str, field: FieldInfo) -> set[str]:
    alias = field.validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return {name, *(choice for choice in choices if isinstance(choice, str))}


def _inner_parts(value: object, raw: object) -> Iterator[tuple[str, BaseModel, object]]:
    """Yield the parts inside a field's value with the ends of their paths."""
    if isinstance(value, ManifestPart):
        yield "", value, raw
    elif isinstance(value, Mapping) and isinstance(raw, dict):
        parts, texts = cast("Mapping[str, BaseModel]", value), cast("dict[str, object]", raw)
        yield from ((f"{key}.", part, texts[key]) for key, part in parts.items())
    elif isinstance(value, Sequence) and isinstance(raw, list):
        pairs = zip(cast("Sequence[object]", value), cast("list[object]", raw), strict=False)
        yield from (
            (f"{number}.", one, its) for number, (one, its) in enumerate(pairs) if isinstance(one, ManifestPart)
        )


def _list_doubts(manifest: TemplateManifest) -> Iterator[ManifestFault]:
    """Yield warnings about what is allowed and probably a mistake."""
    secrets = {secret.name for secret in manifest.secrets}
    for name, channel in manifest.channels.items():
        for token in (channel.bot_token, channel.app_token):
            if token is not None and token.removeprefix("env:") not in secrets:
                yield ManifestFault(f"channels.{name}", f"{token} is none of the secrets")
    for number, route in enumerate(manifest.routes):
        if not route.protected:
            yield ManifestFault(f"routes.{number}", f"anyone can open {route.path} without the gateway token")


def _printable(text: str) -> str:
    return text.encode(errors="replace").decode().replace("\0", "?")
