"""An agent that attacks its host and its neighbours: visibility, network, resources (D11, D12)."""

import asyncio
import base64
import json
import os
import socket
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.server import RunningServer

SECRET = "kept-from-agents-5d1c"


@pytest.fixture(scope="module")
async def attacker(server: RunningServer) -> dict[str, Any]:
    return await create(server, "attacker")


@pytest.fixture(scope="module")
async def victim(server: RunningServer) -> dict[str, Any]:
    return await create(server, "victim")


async def create(server: RunningServer, name: str) -> dict[str, Any]:
    answer = await server.client(server.key()).post("/v0/agents", json={"name": name})
    assert answer.status_code == 201, answer.text
    return answer.json()["agent"]


async def run(server: RunningServer, agent: dict[str, Any], command: str, **body: Any) -> dict[str, Any]:
    command_body = {"command": command, **body}
    answer = await server.agent_client(agent).post("/v0/console/exec", json=command_body, timeout=90)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def program(server: RunningServer, agent: dict[str, Any], source: str, **body: Any) -> dict[str, Any]:
    """Run a Python program in the container."""
    encoded = base64.b64encode(source.encode()).decode()
    return await run(server, agent, f"echo {encoded} | base64 -d > /tmp/p.py; exec python3 -I /tmp/p.py", **body)


async def test_it_sees_no_file_of_the_host(
    server: RunningServer, attacker: dict[str, Any], victim: dict[str, Any]
) -> None:
    data = server.roost.core.settings.data
    (data / "host-file").write_text(SECRET)
    await run(server, victim, f"echo {SECRET} > mine; echo {SECRET} > $HOME/mine")
    places = [
        data,
        Path.home(),
        Path(__file__).parents[2],
        "/root",
        "/etc/shadow",
        "/etc/ssh",
        "/run/user",
        "/run/docker.sock",
        "/boot",
        "/var/log",
        "/var/lib",
        "/mnt",
    ]
    for place in places:
        seen = await run(server, attacker, f"ls -A {place} 2>/dev/null | head -5; cat {place} 2>/dev/null | head -c 99")
        assert seen["stdout"] == "", place
    found = await run(
        server, attacker, f"grep -rIl --exclude-dir=proc --exclude-dir=sys {SECRET} / 2>/dev/null", timeoutSeconds=60
    )
    assert found["stdout"] == ""
    other = victim["agentId"]  # so that the command itself does not match
    names = await run(
        server,
        attacker,
        f"find / -xdev -name '*[{other[0]}]{other[1:]}*' 2>/dev/null; cat /proc/*/cmdline /proc/*/environ",
    )
    assert other not in names["stdout"]


async def test_it_sees_no_process_but_its_own(server: RunningServer, attacker: dict[str, Any]) -> None:
    seen = await run(server, attacker, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert str(os.getpid()) not in (await run(server, attacker, "ls /proc"))["stdout"].split()
    assert "pytest" not in seen["stdout"]
    killed = await run(server, attacker, "kill -9 1; sleep 0.1; echo alive")
    assert killed["stdout"] == "alive\n"


@pytest.mark.parametrize(
    "attempt",
    [
        "su -c id", "sudo -n id", "unshare -Ur id", "unshare -n true", "mount -t tmpfs none /tmp", "chroot / id",
        "mknod /tmp/d b 8 0", "echo 0 > /proc/sys/kernel/hostname", "hostname x", "nsenter -t 1 -a id",
        "cp /bin/sh /tmp/sh && chown 0 /tmp/sh && chmod u+s /tmp/sh", "echo x > /usr/bin/x", "dmesg",
        "strace -p 1", "head -c1 /proc/1/mem", "cat /proc/1/environ", "ls /proc/1/root", "head -c1 /proc/kcore",
    ],
)  # fmt: skip
async def test_it_gains_no_power(server: RunningServer, attacker: dict[str, Any], attempt: str) -> None:
    assert (await run(server, attacker, attempt))["exitCode"] != 0
    who = await run(server, attacker, "id -u; grep -E '^(Cap(Eff|Prm|Bnd)|NoNewPrivs|Seccomp):' /proc/self/status")
    assert who["stdout"].split() == [
        *("1000", "CapPrm:", "0" * 16, "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"),
    ]  # fmt: skip


async def test_it_reaches_no_port_of_the_host_and_no_private_address(
    server: RunningServer, attacker: dict[str, Any], victim: dict[str, Any]
) -> None:
    """Without the proxy there is no network; the proxy refuses every spelling of such an address."""
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))  # reachable at every address of this machine
        listener.listen()
        listener.settimeout(0)
        port = listener.getsockname()[1]
        hosts = [
            *("127.0.0.1", "localhost", "0.0.0.0", "[::1]", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"),
            *("10.0.0.1", "192.168.0.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "[fd00::1]", "[fe80::1]"),
            *(socket.gethostname(), f"{victim['agentId']}.agents.localhost", "agents.localhost"),
        ]
        source = f"""
import json, socket
def ask(host, port):
    out = []
    for line in ("CONNECT %s:%d", "GET http://%s:%d/"):
        with socket.create_connection(("127.0.0.1", 8798), 15) as sock:
            sock.sendall((line % (host, port) + " HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n").encode())
            out.append(int(sock.recv(100).split()[1]))
    return out
def direct(host, port):
    try:
        with socket.create_connection((host.strip("[]"), port), 3):
            return "open"
    except OSError as error:
        return "closed"
asked = [(host, port) for host in {hosts!r} for port in ({port}, {server.port})]
print(json.dumps([[host, ask(host, port), direct(host, port)] for host, port in asked]))
"""
        seen = await program(server, attacker, source, timeoutSeconds=120)
        assert seen["exitCode"] == 0, seen["stderr"]
        for host, proxied, directly in json.loads(seen["stdout"]):
            assert set(proxied) <= {400, 403, 502}, host
            assert directly == "closed", host
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_its_socket_opens_the_model_gateway_and_nothing_else(
    server: RunningServer, attacker: dict[str, Any], victim: dict[str, Any]
) -> None:
    source = f"""
import http.client, json
def ask(method, path, headers={{}}):
    api = http.client.HTTPConnection("127.0.0.1", 8799, timeout=10)
    api.request(method, path, headers=headers)
    return api.getresponse().status
paths = ["/v0/agents", "/v0/agents/{victim["agentId"]}", "/v0/agents/{attacker["agentId"]}/gateway-token", "/metrics",
         "/v1/../agents", "/v0/llm/../agents", "/v0/llm/%2e%2e/agents", "//v0/agents", "/readyz", "/openapi",
         "http://localhost/v0/agents"]
forged = {{"Host": "localhost", "X-Forwarded-For": "127.0.0.1", "X-Relay-Agent": "{victim["agentId"]}"}}
refused = [ask("GET", path, headers) for path in paths for headers in ({{}}, forged)]
print(json.dumps([*refused, ask("GET", "/v1/models", forged)]))
"""
    seen = await program(server, attacker, source)
    *refused, models = json.loads(seen["stdout"])
    assert set(refused) <= {400, 404, 421}
    assert models == 200


async def check_health(server: RunningServer, agent: dict[str, Any]) -> None:
    """Check that an agent and the API respond within their clients' timeouts."""
    own, api = server.agent_client(agent), server.client(server.key())
    chat = {"model": "scripted", "messages": [{"role": "user", "content": "/say well"}]}
    async with asyncio.timeout(20):
        assert (await own.post("/v1/chat/completions", json=chat)).json()["choices"][0]["message"]["content"] == "well"
        assert (await own.post("/v0/console/exec", json={"command": "echo well"})).json()["stdout"] == "well\n"
        assert (await api.get("/v0/agents")).status_code == 200
        assert (await server.client().get("/readyz")).status_code == 200


FLOODS = {
    "sockets": """
held = []
for port in (8799, 8798) * 400:
    try:
        held.append(socket.create_connection(("127.0.0.1", port), 2))
        held[-1].sendall(b"GET /v1/models HTTP/1.1\\r\\nHost: x\\r\\nA: ")
    except OSError:
        pass
time.sleep(60)
""",
    "bodies": """
held = []
for number in range(200):
    try:
        held.append(socket.create_connection(("127.0.0.1", 8799), 2))
        head = b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 30000000\\r\\n\\r\\n"
        held[-1].sendall(head + b"[" * 1000000)
    except OSError:
        pass
time.sleep(60)
""",
    "processes": """
while True:
    try:
        os.fork()
    except OSError:
        pass
""",
    "output": """
while True:
    os.write(1, b"eyJ" * 20000)
    os.write(2, b"\\x1b[" * 30000)
""",
    "memory": """
held = []
while True:
    held.append(bytearray(1 << 26))
""",
    "connections out": """
while True:
    try:
        with socket.create_connection(("127.0.0.1", 8798), 2) as sock:
            sock.sendall(b"CONNECT 10.0.0.1:80 HTTP/1.1\\r\\n\\r\\n")
            sock.recv(10)
    except OSError:
        pass
""",
}


@pytest.mark.parametrize("flood", FLOODS)
async def test_a_flood_is_its_own_trouble(
    server: RunningServer, attacker: dict[str, Any], victim: dict[str, Any], flood: str
) -> None:
    flooding = [
        asyncio.create_task(
            _ignore_errors(program(server, attacker, "import os, socket, time\n" + FLOODS[flood], timeoutSeconds=4))
        )
        for _ in range(2)
    ]
    while not all(task.done() for task in flooding):
        await check_health(server, victim)
    api = server.client(server.key())
    async with asyncio.timeout(60):  # processes that the flood killed are restarted
        while (await api.get(f"/v0/agents/{attacker['agentId']}")).json()["agent"]["status"] != "running":
            await asyncio.sleep(0.1)


async def _ignore_errors(work: Any) -> None:
    try:
        await work
    except (AssertionError, httpx.HTTPError):
        return  # its own console may fail


GATEWAYS = {
    "garbage": "send(os.urandom(70000))",
    "never": "time.sleep(600)",
    "huge head": "send(OK); [send(b'A: ' + b'x' * 60000 + END) for _ in range(99)]",
    "endless": "send(OK + END); [send(b'x' * 1000000) for _ in iter(int, 1)]",
    "hints": "[send(b'HTTP/1.1 103 Early Hints' + END + END) for _ in iter(int, 1)]",
    "two answers": "send((OK + b'Content-Length: 6' + END + END).join([b'', b'honest', b'forged']))",
    "cookies": "send(OK + b'Content-Length: 0' + END + b'Set-Cookie: gw_token=x; Domain=localhost' + END + END)",
}


TOLD = {"two answers": ("honest", 200), "cookies": ("", 200)}


@pytest.mark.parametrize("kind", GATEWAYS)
async def test_a_gateway_that_lies_harms_nobody_else(server: RunningServer, victim: dict[str, Any], kind: str) -> None:
    liar = await create(server, "liar")
    try:
        source = f"""
import os, signal, socket, threading, time
OK, END = b"HTTP/1.1 200 OK\\r\\n", b"\\r\\n"
for pid in filter(str.isdigit, os.listdir("/proc")):
    if b"gateway.py" in open(f"/proc/{{pid}}/cmdline", "rb").read() and pid != str(os.getpid()):
        os.kill(int(pid), signal.SIGKILL)
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
while True:
    try:
        server.bind(("127.0.0.1", {server.roost.agents.registry.runtimes.get_engine("fake").port}))
        break
    except OSError:
        time.sleep(0.001)
server.listen(100)
open("/workspace/lying", "w").close()
def lie(connection):
    try:
        send = connection.sendall
        connection.recv(65536)
        {GATEWAYS[kind]}
        connection.recv(65536)
    except OSError:
        pass
while True:
    threading.Thread(target=lie, args=(server.accept()[0],), daemon=True).start()
"""
        lying = asyncio.create_task(_ignore_errors(program(server, liar, source, timeoutSeconds=60)))
        own = server.agent_client(liar)
        async with asyncio.timeout(30):
            while (await own.get("/v0/files?path=lying")).status_code != 200:
                await asyncio.sleep(0.02)
        asked = [asyncio.create_task(_answer(own, "/v1/models")) for _ in range(20)]
        for _ in range(3):
            await check_health(server, victim)
        assert (await own.get("/v0/logs")).status_code == 200
        for task in asked:
            task.cancel()
        body, headers = await _answer(own, "/x")
        assert (body, headers.get("status")) == TOLD.get(kind, (body, headers.get("status")))
        assert "set-cookie" not in headers
        lying.cancel()
    finally:
        assert (await server.client(server.key()).delete(f"/v0/agents/{liar['agentId']}")).status_code == 200
    await check_health(server, victim)


async def _answer(client: httpx.AsyncClient, path: str, seconds: float = 5.0) -> tuple[str, dict[str, Any]]:
    """Return the start of the body and the headers; nothing for an incomplete response."""
    try:
        async with asyncio.timeout(seconds), client.stream("GET", path) as response:
            async for piece in response.aiter_bytes():
                return piece[:1000].decode("latin-1"), {**response.headers, "status": response.status_code}
            return "", {**response.headers, "status": response.status_code}
    except (httpx.HTTPError, TimeoutError):
        return "", {}
