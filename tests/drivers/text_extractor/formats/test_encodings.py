"""Decoding of text files in many languages and encodings, of realistic lengths."""

import os
import unicodedata

import pytest

from roost.drivers.text_extractor.formats.detection import DocumentRefused, RefusalReason
from roost.drivers.text_extractor.formats.encodings import decode_text

# ruff: noqa: RUF001 - texts of other scripts
FRENCH = (
    "L’été dernier, nous avons passé deux semaines à Besançon, où le café coûte à peine trois euros. Après la fête, "
    "les élèves étaient déjà fatigués — mais très heureux d’avoir découvert la région.\n"
)
GERMAN = "Die Straße führt über die Brücke nach Köln; größere Fahrzeuge müssen außen herum fahren. Schöne Grüße!\n"
ITALIAN = "Perché la città è così bella? Però non c’è più tempo: lunedì verrà già il giorno della verità.\n"
DANISH = "På lørdag går vi i skoven og plukker bær; søen ligger stille, og børnene bader længe.\n"
POLISH = (
    "Wczoraj poszliśmy na długi spacer po Łodzi, żeby zobaczyć nowe wystawy i wypić gorącą herbatę. Następnego dnia "
    "padał śnieg, więc zostaliśmy w domu i czytaliśmy książki o średniowieczu.\n"
)
CZECH = "Včera večer jsme šli do divadla a potom na večeři; počasí bylo překvapivě teplé. Žluťoučký kůň úpěl.\n"
RUSSIAN = (
    "Вчера мы ходили в музей и смотрели картины старых мастеров. Погода была прекрасная, поэтому после обеда все "
    "отправились гулять по набережной реки.\n"
)
GREEK = "Χθες πήγαμε στο μουσείο και είδαμε πίνακες παλιών ζωγράφων. Ο καιρός ήταν υπέροχος και περπατήσαμε πολύ.\n"
JAPANESE = (
    "昨日は友達と一緒に美術館へ行きました。天気がとても良かったので、午後は川沿いを散歩しました。春は桜がきれいです。\n"
)
KOREAN = "어제 우리는 친구들과 함께 박물관에 갔습니다. 날씨가 아주 좋아서 오후에는 강변을 산책했습니다.\n"
SIMPLIFIED = (
    "昨天我们和朋友一起去博物馆参观了古代绘画。天气非常好，所以午饭以后大家去河边散步。北京的春天花开得很美。\n"
)
TRADITIONAL = (
    "昨天我們和朋友一起去博物館參觀了古代繪畫。天氣非常好，所以午飯以後大家去河邊散步。臺北的春天花開得很美。\n"
)
ALL = (FRENCH, GERMAN, POLISH, CZECH, RUSSIAN, GREEK, JAPANESE, KOREAN, SIMPLIFIED, TRADITIONAL, "plain ASCII\n")

LEGACY = [
    *((text, "cp1252") for text in (FRENCH, GERMAN, ITALIAN, DANISH)),
    *((text, encoding) for text in (POLISH, CZECH) for encoding in ("iso8859_2", "cp1250")),
    *((RUSSIAN, encoding) for encoding in ("cp1251", "koi8_r")),
    (GREEK, "cp1253"),
    *((JAPANESE, encoding) for encoding in ("shift_jis", "euc_jp")),
    (KOREAN, "euc_kr"),
    (SIMPLIFIED, "gb18030"),
    (TRADITIONAL, "big5"),
]


@pytest.mark.parametrize(("text", "encoding"), LEGACY)
def test_legacy_encodings_are_recognised(text: str, encoding: str) -> None:
    for copies in (1, 20):
        assert decode_text((text * copies).encode(encoding)) == text * copies
    report = "Report of the year, in English first.\n" * 50 + text * 3
    assert decode_text(report.encode(encoding)) == report


@pytest.mark.parametrize(
    "encoding",
    [
        *("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"),
        *("utf-16-be with a mark", "utf-32-be with a mark"),
    ],
)
def test_unicode_is_recognised(encoding: str) -> None:
    name, _, mark = encoding.partition(" ")
    for text in ALL:
        for copies in (1, 2000):
            content = ("\ufeff" if mark else "") + text * copies
            assert decode_text(content.encode(name)).removeprefix("\ufeff") == text * copies


@pytest.mark.parametrize(
    "text", ["café", "Größe: 5 €", "naïve", "é", "Über", "¿qué?", "déjà vu à Orléans", "Ærø", "The café " * 9]
)
def test_short_latin_texts_do_not_become_chinese(text: str) -> None:
    assert decode_text(text.encode("cp1252")) == text


def test_a_declared_encoding_counts_where_the_content_does_not_decide() -> None:
    assert decode_text("Вы".encode("koi8_r"), "koi8-r") == "Вы"
    assert decode_text("größer".encode(), "iso-8859-1") == "größer"
    assert decode_text("größer".encode("cp1252"), "no-such-encoding") == "größer"
    assert decode_text("größer".encode("cp1252"), "utf-8") == "größer"
    assert decode_text("größer".encode("cp1252"), "hex") == "größer"  # a codec that is none of text


def test_a_truncated_end_is_replaced() -> None:
    assert decode_text("große".encode("utf-16")[:-1]) == "groß\ufffd"
    assert decode_text(b"\xef\xbb\xbfx\xe2\x82") == "x\ufffd"


def test_a_few_nuls_are_no_reason_to_refuse_a_text() -> None:
    text = "a line of a log\n" * 50 + "\0" + "grün\n"
    assert decode_text(text.encode()) == text


@pytest.mark.parametrize("size", [400, 4000, 100_000])
def test_random_bytes_are_no_text(size: int) -> None:
    for _ in range(20):
        with pytest.raises(DocumentRefused) as refused:
            decode_text(os.urandom(size))
        assert refused.value.reason == RefusalReason.UNSUPPORTED


def test_a_late_letter_beyond_ascii_is_found_in_a_large_file() -> None:
    text = "only ASCII here\n" * 200_000 + FRENCH
    assert decode_text(text.encode("cp1252")).endswith(FRENCH)
    one_line = "x" * 3_000_000 + "é"
    assert unicodedata.is_normalized("NFC", decode_text(one_line.encode("cp1252")))
