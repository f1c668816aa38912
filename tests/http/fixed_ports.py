"""Ports of agents without a database."""

from collections.abc import Mapping

from roost.agents.registry.agent_ports import AgentPorts


class FixedPorts(AgentPorts):
    def __init__(self, ports: range, agents: Mapping[int, str] | None = None) -> None:
        self.ports = ports
        self._fixed = agents or {}

    def find_port(self, agent_id: str) -> int | None:
        return next((port for port, agent in self._fixed.items() if agent == agent_id), None)

    def find_agent(self, port: int) -> str | None:
        return self._fixed.get(port)
