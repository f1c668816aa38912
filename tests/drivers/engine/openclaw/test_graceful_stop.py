"""The end of a process at SIGTERM in a real Node, and its exit code."""

import signal
import subprocess
from urllib.parse import quote

import pytest

from roost import config
from roost.drivers.engine.openclaw import driver
from roost.drivers.engine.openclaw.install import node_folder

pytestmark = pytest.mark.engine  # needs the installed Node

NODE = str(node_folder(config.load_settings().engines) / "bin" / "node")
UP = "console.log('up'); setInterval(() => {}, 1000);"
PROXY = "process.once('SIGTERM', () => { Promise.resolve().finally(() => process.exit(143)); });"
GATEWAY = "process.on('SIGTERM', () => { setTimeout(() => { console.log('closed'); process.exit(0); }, 50); });"


@pytest.mark.parametrize(
    ("listeners", "code", "last"),
    [(PROXY + GATEWAY, 0, "closed\n"), (GATEWAY, 0, "closed\n"), (PROXY, 143, ""), ("", 143, "")],
)
def test_a_gateway_with_a_listener_ends_itself(listeners: str, code: int, last: str) -> None:
    argv = [NODE, f"--import=data:text/javascript,{quote(driver.GRACEFUL_STOP)}", "--eval", listeners + UP]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert (process.stdout.read(), process.wait(20)) == (last, code)


def test_without_it_the_proxy_ends_the_process_early() -> None:
    with subprocess.Popen([NODE, "--eval", PROXY + GATEWAY + UP], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert (process.stdout.read(), process.wait(20)) == ("", 143)
