"""The variables of ksqldb-server's image, as options of `tailgate up`.

    KSQL_LISTENERS=http://0.0.0.0:8088             --ksqldb 0.0.0.0:8088 --insecure
    KSQL_BOOTSTRAP_SERVERS=broker:9092             --kafka broker:9092
    KSQL_KSQL_SCHEMA_REGISTRY_URL=http://r:8081    --schema-registry http://r:8081
    KSQL_KSQL_CONNECT_URL=http://c:8083            --connect http://c:8083
    KSQL_KSQL_LOGGING_PROCESSING_STREAM_AUTO_CREATE=true
                                                   --processing-log
    KSQL_CONNECT_GROUP_ID=g                        --connect embedded --connect-set group.id=g

An option of the command line takes precedence. Variables that change the access to Kafka or to the server are refused; others have no
effect, and are named at the start.

Source: Confluent, "Configure ksqlDB for Docker".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue

PREFIX, WORKER = "KSQL_", "KSQL_CONNECT_"
LISTENERS, BROKERS = "KSQL_LISTENERS", "KSQL_BOOTSTRAP_SERVERS"
URLS = {"KSQL_KSQL_SCHEMA_REGISTRY_URL": "--schema-registry", "KSQL_KSQL_CONNECT_URL": "--connect"}
# each creates the topic, its stream or both; the option creates both
PROCESSING_LOG = ("KSQL_KSQL_LOGGING_PROCESSING_STREAM_AUTO_CREATE", "KSQL_KSQL_LOGGING_PROCESSING_TOPIC_AUTO_CREATE")
# the beginnings of variables whose effect a user relies on, each with what to do instead
REFUSED = {
    "KSQL_SECURITY_": "Use a listener of the broker without TLS and authentication.",
    "KSQL_SASL_": "Use a listener of the broker without TLS and authentication.",
    "KSQL_SSL_": "Use --tls-cert, --tls-key and --tls-ca.",
    "KSQL_AUTHENTICATION_": "Roles with passwords sign in by Basic authentication: CREATE ROLE.",
    "KSQL_KSQL_QUERIES_FILE": "Run the statements with ksql -f FILE.",
    "KSQL_KSQL_SCHEMA_REGISTRY_BASIC_": "Write user and password into KSQL_KSQL_SCHEMA_REGISTRY_URL.",
    "KSQL_KSQL_SCHEMA_REGISTRY_SSL_": "Use a registry whose certificate the system knows.",
}
SPELLINGS = (("___", "\0"), ("__", "\1"), ("_", "."), ("\0", "-"), ("\1", "_"))


@dataclass(frozen=True, slots=True)
class Translation:
    """The options of `tailgate up`, and the names of variables without effect."""

    options: tuple[str, ...]
    ignored: tuple[str, ...]


def translated(environment: Mapping[str, str]) -> Translation:
    """Returns the options for the variables of ksqldb-server's image. Raises 0A000, 22023.

    They count only if KSQL_LISTENERS or KSQL_BOOTSTRAP_SERVERS is set, as in each configuration of the image.
    """
    variables = {name: value.strip() for name, value in sorted(environment.items()) if name.startswith(PREFIX)}
    if LISTENERS not in variables and BROKERS not in variables:
        return Translation((), ())
    options, ignored, settings = list[str](), [], {}
    for name, value in variables.items():
        for beginning, hint in REFUSED.items():
            if name.startswith(beginning):
                raise FeatureNotSupported(f"variable {name} is not supported", hint=hint)
        if name == LISTENERS:
            options += _listener(value)
        elif name == BROKERS:
            options += ["--kafka", _brokers(value)]
        elif name in URLS:
            options += [URLS[name], value.split(",")[0].strip()]
        elif name in PROCESSING_LOG:
            options += ["--processing-log"] if value.lower() == "true" and "--processing-log" not in options else []
        elif name.startswith(WORKER):
            settings[_property(name.removeprefix(WORKER))] = value
        else:
            ignored.append(name)
    if settings and "--connect" not in options:
        options += ["--connect", "embedded", *(word for n, v in settings.items() for word in ("--connect-set", f"{n}={v}"))]
    elif settings:
        ignored += [name for name in variables if name.startswith(WORKER)]
    return Translation(tuple(options), tuple(ignored))


def applied(arguments: Sequence[str], environment: Mapping[str, str], say: Callable[[str], None]) -> list[str]:
    """Returns the arguments of `tailgate up` with the options for the variables. Names variables without effect."""
    translation = translated(environment)
    if translation.ignored:
        say(f"variables without effect: {', '.join(translation.ignored)}")
    return [*arguments[:1], *translation.options, *arguments[1:]]  # later options override earlier ones


def _listener(value: str) -> list[str]:
    """Returns the options for an address of KSQL_LISTENERS. Raises 22023, 0A000."""
    if "," in value:
        raise FeatureNotSupported(f"several addresses in {LISTENERS} are not supported", hint="Name one.")
    try:
        parts = urlsplit(value)
        host, port = parts.hostname or "0.0.0.0", parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or port is None:
        raise InvalidParameterValue(f'{LISTENERS}: "{value}" is not http://HOST:PORT')
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return ["--ksqldb", address, *(["--insecure"] if parts.scheme == "http" else [])]


def _brokers(value: str) -> str:
    """Returns addresses without the names of listeners. Raises 0A000 for a listener with TLS or SASL."""
    addresses = []
    for part in value.split(","):
        protocol, separator, address = part.strip().rpartition("://")
        if separator and protocol.upper() != "PLAINTEXT":
            raise FeatureNotSupported(f"{BROKERS}: protocol {protocol} is not supported", hint="Use a listener of protocol PLAINTEXT.")
        addresses.append(address)
    return ",".join(addresses)


def _property(name: str) -> str:
    """Returns the property for the end of a variable's name.

    >>> _property("VALUE_CONVERTER_SCHEMAS_ENABLE"), _property("A__B___C")
    ('value.converter.schemas.enable', 'a_b-c')
    """
    for old, new in SPELLINGS:
        name = name.replace(old, new)
    return name.lower()
