import json

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import EngineNotInstalled, GatewaySetup, InvalidVersionName
from roost.drivers.engine.fake.driver import FakeEngine


def test_versions_come_and_go() -> None:
    engine = FakeEngine()
    assert engine.installed() == ["1.0.0"]
    engine.install("1.1.0", lambda _text, _done: None)
    assert engine.installed() == ["1.1.0", "1.0.0"]
    engine.remove("1.1.0")
    engine.remove("1.1.0")
    with pytest.raises(EngineNotInstalled):
        engine.require("1.1.0")
    with pytest.raises(InvalidVersionName):
        engine.install("2.0.0", lambda _text, _done: None)


@pytest.mark.parametrize("existing", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_garbage_is_replaced(existing: bytes) -> None:
    path = ".roost/fake/settings.json"
    setup = GatewaySetup(
        "a", "n", "http://o", Sensitive("t"), "http://m", ["model"], "http://p", existing={path: existing}
    )
    settings = json.loads(FakeEngine(port=7).plan("1.0.0", setup).files[path])
    assert settings == {
        "version": "1.0.0",
        "broken": False,
        "name": "n",
        "port": 7,
        "token": "t",
        "model_url": "http://m",
        "model": "model",
        "channels": {},
    }
