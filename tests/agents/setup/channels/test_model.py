"""Validation of channels, and their public view."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.agents.setup.channels import model
from roost.agents.setup.channels.model import (
    Channel,
    ChannelRequest,
    InvalidAllowFrom,
    InvalidChannelToken,
    MissingAppToken,
    MissingBotToken,
)
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import CHANNELS, ERROR_LIMIT, ChannelSetup, ChannelState, DmPolicy

BOT = Sensitive("123456789:AAExampleTokenOfThirtyFiveLetters00")
SLACK = ChannelRequest(Sensitive(" xoxb-1-2-abc "), Sensitive("xapp-1-A-abc"))


def telegram(policy: DmPolicy = "open", *allow_from: str) -> Channel:
    return Channel("telegram", BOT, None, policy, allow_from, enabled=True, bot_name="weather_bot")


def test_a_first_order_has_defaults_and_loses_white_space() -> None:
    made = model.merge_request("slack", SLACK, None)
    assert (made.bot_token.reveal(), made.dm_policy, made.allow_from, made.enabled) == (
        "xoxb-1-2-abc",
        "open",
        (),
        True,
    )
    assert model.merge_request("telegram", ChannelRequest(BOT, Sensitive("xapp-1")), None).app_token is None


def test_unsent_fields_stay_and_another_token_is_another_bot() -> None:
    present = telegram("pairing", "7")
    assert model.merge_request("telegram", ChannelRequest(bot_token=Sensitive("  ")), present) == present
    emptied = model.merge_request("telegram", ChannelRequest(allow_from=(), enabled=False), present)
    assert (emptied.allow_from, emptied.enabled, emptied.bot_name) == ((), False, "weather_bot")
    assert model.merge_request("telegram", ChannelRequest(Sensitive("1:other")), present).bot_name is None


def test_first_tokens_are_needed() -> None:
    with pytest.raises(MissingBotToken):
        model.merge_request("whatsapp", ChannelRequest(), None)
    with pytest.raises(MissingAppToken):
        model.merge_request("slack", ChannelRequest(Sensitive("xoxb-1")), None)


@given(st.sampled_from(CHANNELS), st.text(max_size=80))
def test_no_token_breaks_out_of_an_address_or_a_header(name: str, text: str) -> None:
    channel = Channel(name, Sensitive(text), None, "open", (), enabled=True)
    try:
        model.check_channel(channel)
    except InvalidChannelToken:
        return
    assert text.isascii()
    assert text.isprintable()
    assert not set(text) & set(" \r\n")
    assert name != "telegram" or not set(text) & set("/?#%.")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("telegram", "123", "@ada"),
        ("slack", "U012AB", "u012ab"),
        ("discord", "80351110224678912", "ada#1234"),
        ("whatsapp", "+4912345678", "ada"),
    ],
)
def test_user_ids_have_the_platforms_form(name: str, good: str, bad: str) -> None:
    tokens = {"telegram": BOT, "slack": Sensitive("xoxb-abc"), "discord": Sensitive("a" * 20 + ".abc." + "b" * 20)}
    for policy in ("open", "pairing"):
        model.check_channel(Channel(name, tokens.get(name, BOT), None, policy, (good,), enabled=True))
    for ids in ((bad,), (good, bad), ("",), (good + "\n",), (good,) * 501):
        with pytest.raises(InvalidAllowFrom):
            model.check_channel(Channel(name, tokens.get(name, BOT), None, "open", ids, enabled=True))


def test_the_star_is_anyone_and_contradicts_pairing() -> None:
    assert telegram("open", "*", "7").to_setup() == ChannelSetup(BOT, None, "open", ())
    model.check_channel(telegram("open", "*"))
    with pytest.raises(InvalidAllowFrom):
        model.check_channel(telegram("pairing", "*"))


def test_a_hint_tells_nothing_of_a_short_token() -> None:
    assert model.token_hint(BOT) == "rs00"
    assert model.token_hint(Sensitive("short")) is None


def test_the_token_of_whatsapp_may_be_had_twice() -> None:
    assert Channel("whatsapp", BOT, None, "open", (), enabled=True).token_hashes == (None, None)
    assert telegram().token_hashes[0] != model.merge_request("slack", SLACK, None).token_hashes[0]


def test_states_of_a_gateway_are_sanitized_cut_and_masked() -> None:
    told = model.redact_state(
        ChannelState(running=True, last_error=f"\x1b[31m{BOT.reveal()} failed " + "x" * 900), telegram()
    )
    assert told is not None
    assert told.last_error is not None
    assert told.last_error.startswith("[redacted] failed xx")
    assert len(told.last_error) == ERROR_LIMIT
    assert model.redact_state(None, telegram()) is None
