"""The declaration of a fleet, version 1: agents by their names, with all that they have.

The names are those of the manifests of templates. All scalars of the file are text, which the fields interpret: `1.10`
and `on` are no number and no boolean where text is wanted. Unknown keys are errors. A key that is missing leaves things
as they are; a list that is there is complete.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from roost.agents.library.skills.model import ATTACHED_LIMIT, SLUG_LENGTH, parse_cid_spellings
from roost.agents.library.templates.manifest import (
    SLUG_LIMIT,
    SLUG_PATTERN,
    ManifestPart,
    TemplateAgent,
    TemplateRoute,
    TemplateScripts,
    TemplateSecret,
    TemplateTask,
    check_secret_name,
    check_text,
    parse_schedule_text,
)
from roost.agents.network.routes.model import ROUTE_LIMIT
from roost.agents.registry.model import MODEL_LIMIT
from roost.agents.setup.channels.model import ALLOW_FROM_LIMIT, ID_LIMIT
from roost.agents.setup.tasks.model import TASK_LIMIT, InvalidTaskParameters, parse_new_task
from roost.agents.setup.tasks.schedules import InvalidSchedule, parse_schedule
from roost.agents.setup.tasks.schemas import CreateTaskRequest, ScheduleRecord, schedule_record
from roost.core.problem import InvalidInput
from roost.core.yaml_document import InvalidYamlDocument, YamlDocument, YamlPath, parse_yaml
from roost.drivers.engine.abilities.channels import DmPolicy
from roost.drivers.engine.abilities.tasks import AGENT_TURN

AGENTS_LIMIT, SECRETS_LIMIT = 200, 1000
FAULTS_LIMIT = 20
"""Maximum number of errors reported for one file."""
_MESSAGES = {
    "Extra inputs are not permitted": "unknown key",
    "Field required": "is missing",
    "'str' instances are not allowed as a Sequence value": "must be a list",
}
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SLUG = re.compile(r"(@[^/@\s]+/[^/@\s]+)(?:@(\S+))?")
_TIME = re.compile(r"\d{4}-")
_MINUTE_MS = 60_000
_TASK_FIELDS = ("name", "schedule", "payload", "description", "enabled", "delivery", "sessionTarget", "wakeMode")


class InvalidFleet(InvalidInput):
    """The file does not declare a fleet; the message has a line for each error."""


def environment_name(value: str) -> str | None:
    """Return NAME of `${NAME}`, None for other text."""
    found = _REFERENCE.fullmatch(value)
    return found and found[1]


def _check_reference(value: str) -> str:
    if environment_name(value) is None:
        raise ValueError("must be ${NAME} of an environment variable; a token does not belong in a file")
    return value


def _parse_skill(value: object) -> object:
    """Return the long form of a skill: text is a path, a CID, `@owner/name`, `@owner/name@version` or a name."""
    if not isinstance(value, str):
        return value
    if value.startswith(("./", "../", "/", "~/")) or value in {".", ".."}:
        return {"path": value}
    if found := _SLUG.fullmatch(value):
        return {"slug": found[1], "version": found[2]}
    return {"cid" if parse_cid_spellings(value) else "name": value}


def _parse_schedule(value: object) -> object:
    """Return a schedule; a single time may have passed, because the file remains when its task has run."""
    if not isinstance(value, str) or not _TIME.match(value):
        return parse_schedule_text(value)
    try:
        at = datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError("must be a time such as 2027-01-31T09:00:00+01:00") from None
    return ScheduleRecord(kind="at", at=at if at.tzinfo else at.replace(tzinfo=UTC))


_Text = Annotated[str, AfterValidator(check_text)]
_Token = Annotated[str, AfterValidator(_check_reference)]
_SecretName = Annotated[str, AfterValidator(check_secret_name)]
_ChannelName = Literal["telegram", "slack", "discord", "whatsapp"]


class FleetSecret(TemplateSecret):
    """A secret of the tenant; `value` is `${NAME}`, or of a variable also the text itself."""

    value: Annotated[_Text, Field(min_length=1)]

    @model_validator(mode="after")
    def _check_value(self) -> Self:
        if self.type != "variable":
            _check_reference(self.value)
        return self


class FleetSkill(ManifestPart):
    """A skill by exactly one of slug (of the library or the hub), CID, folder, and name in the library."""

    slug: Annotated[
        Annotated[_Text, Field(max_length=SLUG_LENGTH, pattern=r"^@[^/@\s]+/[^/@\s]+$")] | None,
        Field(validation_alias=AliasChoices("slug", "clawhub_slug")),
    ] = None
    version: Annotated[_Text, Field(min_length=1, max_length=128)] | None = None
    cid: Annotated[_Text, Field(min_length=1, max_length=128)] | None = None
    path: Annotated[_Text, Field(min_length=1)] | None = None
    name: Annotated[_Text, Field(min_length=1, max_length=128)] | None = None
    acknowledge: bool = False
    """Whether it is attached although it is found dangerous."""

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        if sum(one is not None for one in (self.slug, self.cid, self.path)) > 1 or not self.label:
            raise ValueError("a skill has one of slug, cid, path and name")
        if self.cid is not None and not parse_cid_spellings(self.cid):
            raise ValueError("cid is not a CID")
        if self.version is not None and (self.cid or self.path):
            raise ValueError("version belongs to a slug or a name")
        return self

    @property
    def label(self) -> str:
        """What the file calls it."""
        return self.slug or self.path or self.name or self.cid or ""


class FleetChannel(ManifestPart):
    """Settings of a channel; a token is `${NAME}`, and is sent if the channel is new or its end differs."""

    enabled: bool = True
    dm_policy: DmPolicy = "pairing"
    allow_from: Annotated[
        Sequence[Annotated[_Text, Field(min_length=1, max_length=ID_LIMIT)]], Field(max_length=ALLOW_FROM_LIMIT)
    ] = ()
    bot_token: _Token | None = None
    app_token: _Token | None = None

    @property
    def tokens(self) -> Mapping[str, str]:
        """Names of the environment variables by the fields of the tokens."""
        return {
            field: name
            for field, value in (("botToken", self.bot_token), ("appToken", self.app_token))
            if value is not None and (name := environment_name(value))
        }


class FleetTask(TemplateTask):
    schedule: Annotated[ScheduleRecord, BeforeValidator(_parse_schedule)]

    @model_validator(mode="after")
    def _check_task(self) -> Self:
        if self.schedule.kind == "at" and self.schedule.at is not None:
            return self
        request = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        try:
            parse_new_task(CreateTaskRequest.model_validate(request).to_fields())
        except InvalidTaskParameters:
            raise ValueError("the schedule, the payload or the name is malformed") from None
        return self


class FleetAgent(TemplateAgent):
    """An agent. None, for a list, leaves what the agent has; `model_fields_set` tells it for the other fields."""

    model: Annotated[_Text, Field(max_length=MODEL_LIMIT)] | None = None
    engine: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9-]{0,31}$")] | None = None
    template: Annotated[str, Field(max_length=SLUG_LIMIT, pattern=SLUG_PATTERN)] | None = None
    secrets: Annotated[Sequence[_SecretName], Field(max_length=SECRETS_LIMIT)] | None = None
    skills: (
        Annotated[Sequence[Annotated[FleetSkill, BeforeValidator(_parse_skill)]], Field(max_length=ATTACHED_LIMIT)]
        | None
    ) = None
    channels: Mapping[_ChannelName, FleetChannel] | None = None
    tasks: Annotated[Sequence[FleetTask], Field(max_length=TASK_LIMIT)] | None = None
    scripts: TemplateScripts | None = None
    routes: Annotated[Sequence[TemplateRoute], Field(max_length=ROUTE_LIMIT)] | None = None

    @field_validator("description", "vibe", "emoji", "model", mode="before")
    @classmethod
    def _empty_as_none(cls, value: object) -> object:
        """Return None for an empty value, which removes what the agent has."""
        return None if value == "" else value

    def profile(self) -> Mapping[str, str | None]:
        """Return the fields of the agent itself that the file has."""
        fields = ("description", "vibe", "emoji", "model")
        return {field: cast("str | None", getattr(self, field)) for field in fields if field in self.model_fields_set}


class FleetDocument(ManifestPart):
    version: Annotated[Literal[1], BeforeValidator(lambda value: 1 if value == "1" else value)]
    secrets: Annotated[Sequence[FleetSecret], Field(max_length=SECRETS_LIMIT)] = ()
    agents: Annotated[Sequence[FleetAgent], Field(max_length=AGENTS_LIMIT)]


def parse_fleet(text: str, source: str) -> FleetDocument:
    """Parse a file; `source` is its name in messages. Raises InvalidFleet, which never quotes a value."""
    try:
        document = parse_yaml(text)
    except InvalidYamlDocument as problem:
        raise InvalidFleet(f"{source}:{problem.line}: {problem.reason}") from None
    try:
        fleet = FleetDocument.model_validate(document.content, strict=False, extra="forbid")
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False, include_context=False)
        found = [(tuple(fault["loc"]), str(fault["msg"]).removeprefix("Value error, ")) for fault in faults]
        raise _describe_faults(document, source, found) from None
    if repeated := list(_check_repeated(fleet)):
        raise _describe_faults(document, source, repeated)
    return fleet


def _check_repeated(fleet: FleetDocument) -> Iterator[tuple[YamlPath, str]]:
    yield from _repeated(("secrets",), fleet.secrets, lambda one: one.name)
    yield from _repeated(("agents",), fleet.agents, lambda one: one.name)
    for number, agent in enumerate(fleet.agents):
        yield from _repeated(("agents", number, "secrets"), agent.secrets or (), lambda one: one)
        yield from _repeated(("agents", number, "skills"), agent.skills or (), lambda one: one.label)
        yield from _repeated(("agents", number, "routes"), agent.routes or (), lambda one: one.path)
        yield from _repeated(("agents", number, "tasks"), agent.tasks or (), lambda one: one.name.strip())


def _repeated(path: YamlPath, items: Sequence[Any], name_of: Callable[[Any], str]) -> Iterator[tuple[YamlPath, str]]:
    names = [name_of(item) for item in items]
    for number, name in enumerate(names):
        if name in names[:number]:
            yield (*path, number), f"{name[:100]!r} stands twice"


def _describe_faults(document: YamlDocument, source: str, found: Sequence[tuple[YamlPath, str]]) -> InvalidFleet:
    lines = [_describe_fault(document, source, path, message) for path, message in found[:FAULTS_LIMIT]]
    more = [f"and {len(found) - FAULTS_LIMIT} more"] if len(found) > FAULTS_LIMIT else []
    return InvalidFleet("\n".join([*lines, *more]))


def _describe_fault(document: YamlDocument, source: str, path: YamlPath, message: str) -> str:
    """Return `FILE:LINE: agents[1].tasks[0].schedule: message` of the nearest value that the file has."""
    path = tuple(part for part in path if part != "[key]")
    known = path
    while known not in document.lines:
        known = known[:-1]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    message = _MESSAGES.get(message, message)
    return f"{source}:{document.lines[known]}: {where[:200]}: {message}"


def task_fields(task: FleetTask) -> dict[str, Any]:
    """Return the fields that a task has, as a request has them; two equal tasks have equal fields."""
    found = task.model_dump(mode="json", by_alias=True, exclude_none=True, include=set(task.model_fields_set))
    found["schedule"] = _drop_none(_complete_schedule(task.schedule).model_dump(mode="json", by_alias=True))
    found["payload"] = {key: _strip(value) for key, value in found["payload"].items()}
    return {key: _strip(value) for key, value in found.items()}


def parse_task_record(record: Mapping[str, Any]) -> FleetTask | None:
    """Return a task of an agent, None for one that a file cannot declare."""
    fields = {key: _drop_none(record[key]) for key in _TASK_FIELDS if record[key] is not None}
    try:
        return FleetTask.model_validate(fields, strict=False)
    except ValidationError:
        return None


def task_document(task: FleetTask) -> dict[str, Any]:
    """Return the shortest form of an agent's task in a file."""
    fields = task_fields(task)
    shown: dict[str, Any] = {"name": fields["name"], "schedule": schedule_document(fields["schedule"])}
    payload = fields["payload"]
    if payload.keys() == {"kind", "message"} and payload["kind"] == AGENT_TURN:
        shown["prompt"] = payload["message"]
    else:
        shown["payload"] = payload
    defaults = {"enabled": True, "delivery": {"mode": "none", "bestEffort": False}, "wakeMode": "now"}
    for key in ("description", *defaults):
        if key in fields and fields[key] != defaults.get(key):
            shown[key] = fields[key]
    return shown


def schedule_document(schedule: Mapping[str, Any]) -> Any:
    """Return the text of a schedule that has one, or its fields."""
    match schedule["kind"]:
        case "at":
            return schedule["at"]
        case "every" if schedule["everyMs"] % _MINUTE_MS == 0:
            return f"every {schedule['everyMs'] // _MINUTE_MS}m"
        case "cron" if not schedule["staggerMs"]:
            zone = "" if schedule["tz"] == "UTC" else f" {schedule['tz']}"
            return f"{schedule['expr']}{zone}"
        case _:
            return dict(schedule)


def _complete_schedule(schedule: ScheduleRecord) -> ScheduleRecord:
    """Return the schedule with its defaults; a time stays, which may have passed."""
    if schedule.kind == "at":
        return schedule
    try:
        return schedule_record(parse_schedule(schedule.model_dump()))
    except InvalidSchedule:  # the server says so
        return schedule


def _drop_none(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: one for key, one in cast("dict[str, Any]", value).items() if one is not None}


def _strip(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value
