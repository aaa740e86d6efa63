"""Settings of Kafka Connect's converters: Confluent's converter for Avro as Apicurio's, which writes the same messages.

Source: Apicurio Registry 2.6, documentation, "Using Kafka client serializers/deserializers", "Kafka Connect converters".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

CONFLUENT_AVRO = "io.confluent.connect.avro.AvroConverter"
APICURIO_AVRO = "io.apicurio.registry.utils.converter.AvroConverter"
SIDES = ("key.converter", "value.converter")


def apicurio_avro(side: str, registry: str) -> dict[str, str]:
    """Returns the settings for Confluent's wire format, with the ids of Confluent's interface. `side`: one of SIDES."""
    settings = {
        "": APICURIO_AVRO,
        ".apicurio.registry.url": f"{registry.rstrip('/')}/apis/registry/v2",
        ".apicurio.registry.auto-register": "true",
        ".apicurio.registry.as-confluent": "true",
        ".apicurio.registry.use-id": "contentId",
        ".apicurio.registry.headers.enabled": "false",
        ".apicurio.registry.artifact-resolver-strategy": "io.apicurio.registry.serde.strategy.TopicIdStrategy",
    }
    return {side + name: value for name, value in settings.items()}


def with_installed_converters(config: Mapping[str, str], installed: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """Returns a configuration in which Apicurio's converter replaces Confluent's, if only the former is installed.

    The second value has the sides for which this is so.
    """
    result, sides = dict(config), []
    for side in SIDES:
        if config.get(side) == CONFLUENT_AVRO and CONFLUENT_AVRO not in installed and APICURIO_AVRO in installed:
            of_confluent = [name for name in config if name.startswith(f"{side}.")]
            registry = config.get(f"{side}.schema.registry.url", "").split(",")[0].strip()
            for name in of_confluent:
                del result[name]
            result |= apicurio_avro(side, registry)
            sides.append(side)
    return result, sides
