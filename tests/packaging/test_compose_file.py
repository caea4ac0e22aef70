"""The compose file: its settings are read as the containers would read them; nothing is run."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from cli.settings import resolve
from cli.settings.kafka_names import is_kafka_name
from cli.settings.table import find_setting
from cli.settings.upstream_rules import parse_relay_ports
from tests.groups import CHECKOUT
from tests.packaging.containerfile import (
    CONTAINERFILE,
    compute_environment,
    read_instructions,
    split_stages,
)

FILE = CHECKOUT / "packaging" / "compose.yaml"
COMPOSE: Any = yaml.safe_load(FILE.read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
MUSTER: dict[str, Any] = SERVICES["muster"]
IMAGE = compute_environment(split_stages(read_instructions())[1])


def read_kafka_properties() -> dict[str, str]:
    """As the image of Kafka makes them of its variables."""
    environment = SERVICES["kafka"]["environment"]
    return {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in environment.items()
    }


def test_all_values_are_text() -> None:
    """YAML makes numbers and booleans of some, which engines take for other text."""
    for service in SERVICES.values():
        assert all(isinstance(value, str) for value in service.get("environment", {}).values())


def test_muster_takes_its_settings() -> None:
    resolved = resolve((), IMAGE | MUSTER["environment"])
    assert resolved.warnings == ()
    brokers = resolved.values["upstream.bootstrap.servers"]
    advertised = read_kafka_properties()["advertised.listeners"]
    assert advertised == f"PLAINTEXT://{brokers[0]}"  # type: ignore[index]
    ports = resolved.values["upstream.relay.ports"]
    assert len(parse_relay_ports(str(ports))) >= 1


def test_kafka_has_the_names_of_kafka_and_classic_groups_alone() -> None:
    properties = read_kafka_properties()
    unknown = [name for name in properties if not (is_kafka_name(name) or find_setting(name))]
    assert unknown == []
    assert properties["group.coordinator.rebalance.protocols"] == "classic"


def test_only_this_machine_reaches_the_ports() -> None:
    for service in SERVICES.values():
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), port
    published = {port.split(":")[1] for port in MUSTER["ports"]}
    environment = MUSTER["environment"]
    assert published == {
        environment[f"MUSTER_LISTEN_{name}"].rpartition(":")[2] for name in ("HTTP", "GRPC")
    }


def test_muster_is_built_here_and_may_write_to_its_volume_alone() -> None:
    build = MUSTER["build"]
    assert (FILE.parent / build["context"] / build["dockerfile"]).resolve() == CONTAINERFILE
    assert MUSTER["read_only"] is True
    assert MUSTER["cap_drop"] == ["ALL"]
    volumes = dict(volume.split(":") for volume in MUSTER["volumes"])
    assert volumes == {"muster-data": IMAGE["MUSTER_DATA_DIR"]}
    assert set(volumes) == set(COMPOSE["volumes"])
    grace_s = int(MUSTER["stop_grace_period"].removesuffix("s"))
    assert grace_s > resolve().integer("shutdown.timeout.ms") / 1_000


@pytest.mark.parametrize("name", ["producer", "billing", "shipping"])
def test_clients_know_muster_alone_and_wait_for_it(name: str) -> None:
    service = SERVICES[name]
    said = " ".join(service["command"])
    assert "--bootstrap-server muster:9092" in said
    assert "kafka:9092" not in said
    assert service["depends_on"] == {"muster": {"condition": "service_healthy"}}
    assert service["image"] == SERVICES["kafka"]["image"]


def test_one_group_of_each_protocol() -> None:
    assert SERVICES["billing"]["command"][-1] == "group.protocol=consumer"
    assert "group.protocol=consumer" not in SERVICES["shipping"]["command"]
