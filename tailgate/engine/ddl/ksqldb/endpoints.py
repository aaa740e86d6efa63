"""The Kafka, the schema registry and the Kafka Connect of ksqlDB's statements."""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.lake.errors import ObjectNotInPrerequisiteState


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The options --kafka, --schema-registry and --connect of the engine."""

    kafka: str = ""
    registry: str = ""
    connect: str = ""

    def brokers(self) -> str:
        """Returns the addresses of the brokers. Raises 55000 if there are none."""
        if not self.kafka:
            raise ObjectNotInPrerequisiteState("there is no Kafka for statements of ksqlDB", hint="Start Tailgate with --kafka HOST:PORT.")
        return self.kafka

    def schemas(self) -> str:
        """Returns the URL of the schema registry. Raises 55000 if there is none."""
        if not self.registry:
            hint = "Start Tailgate with --schema-registry URL."
            raise ObjectNotInPrerequisiteState("there is no schema registry for statements of ksqlDB", hint=hint)
        return self.registry

    def workers(self) -> str:
        """Returns the URL of Kafka Connect. Raises 55000 if there is none."""
        if not self.connect:
            hint = "Start Tailgate with --connect URL, or with --connect embedded."
            raise ObjectNotInPrerequisiteState("there is no Kafka Connect for statements of ksqlDB", hint=hint)
        return self.connect
