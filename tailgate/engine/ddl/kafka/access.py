"""Access to Kafka or a schema registry: settings for `lake.catalog.secrets` from a statement's options.

The same options occur in CREATE CONNECTION, in WITH together with the topic's options, and after a
registry's URL:

    SASL USERNAME = 'ann'           {"username": "ann"}
    SASL PASSWORD = SECRET s        {"password": SecretReference(id of s)}
    ssl_ca_location = 'ca.pem'      {"ca": FileReference("ca.pem")}
"""

from __future__ import annotations

from dataclasses import dataclass

from tailgate.lake.catalog import Catalog, Secret
from tailgate.lake.catalog.formats import ConnectionSettings, FileReference, SecretReference
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.sql.new_items import find_item
from tailgate.sql.statements import Options, OptionValue
from tailgate.sql.statements.values import SecretName

# option → setting (lake.clients)
TLS = {
    "ssl_certificate_authority": "ca",
    "ssl_ca_pem": "ca",
    "ssl_certificate": "certificate",
    "ssl_certificate_pem": "certificate",
    "ssl_key": "key",
    "ssl_key_pem": "key",
    "ssl_key_password": "key_password",
}
FILES = {"ssl_ca_location": "ca", "ssl_certificate_location": "certificate", "ssl_key_location": "key"}
KAFKA = {
    **TLS,
    "security_protocol": "protocol",
    "sasl_mechanisms": "mechanism",
    "sasl_mechanism": "mechanism",
    "sasl_username": "username",
    "sasl_password": "password",
}
REGISTRY = {**TLS, "username": "username", "password": "password"}
SECRETS = ("password", "key", "key_password")  # settings whose value must be a SECRET or a file
PREFIXES = ("security_", "sasl_", "ssl_")  # prefixes of the options in WITH that concern the connection

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Access settings, as an item has them, and the ids of the secrets that they use."""

    settings: ConnectionSettings
    secrets: tuple[int, ...] = ()


def is_access(option: str) -> bool:
    """Returns whether an option in WITH concerns access to Kafka."""
    return option.startswith(PREFIXES)


def kafka(options: Options, catalog: Catalog) -> AccessSettings:
    """Returns the settings for Kafka.

    Raises 22023 if options contradict each other, 0A000 if one is not supported.
    """
    settings, secrets = _settings(options, KAFKA, "Kafka", catalog)
    for name in ("protocol", "mechanism"):
        if name in settings:
            settings[name] = str(settings[name]).upper()
    sasl = {"mechanism", "username", "password"} & settings.keys()
    tls = {"ca", "certificate", "key"} & settings.keys()
    if "protocol" not in settings and (sasl or tls):
        settings["protocol"] = "SASL_SSL" if sasl else "SSL"
    protocol = str(settings.get("protocol", "PLAINTEXT"))
    if protocol not in PROTOCOLS:
        raise InvalidParameterValue(f'security protocol "{protocol}" is not known', hint=f"It is one of {', '.join(PROTOCOLS)}.")
    if sasl and not protocol.startswith("SASL"):
        raise InvalidParameterValue(f"options of SASL make no sense with the security protocol {protocol}")
    if tls and not protocol.endswith("SSL"):
        raise InvalidParameterValue(f"options of SSL make no sense with the security protocol {protocol}")
    if protocol.startswith("SASL"):
        _check_sasl(settings)
    _check_pair(settings)
    return AccessSettings(settings, secrets)


def registry(options: Options, catalog: Catalog) -> AccessSettings:
    """Returns the settings for a schema registry. Raises 22023 or 0A000."""
    settings, secrets = _settings(options, REGISTRY, "a schema registry", catalog)
    if "password" in settings and "username" not in settings:
        raise InvalidParameterValue("a PASSWORD needs a USERNAME")
    _check_pair(settings)
    return AccessSettings(settings, secrets)


def _check_sasl(settings: ConnectionSettings) -> None:
    """Raises 22023 or 0A000 if the settings of SASL are incomplete or not supported."""
    mechanism = settings.get("mechanism")
    if mechanism is None:
        raise InvalidParameterValue("SASL needs SASL MECHANISMS", hint=f"It is one of {', '.join(MECHANISMS)}.")
    if mechanism not in MECHANISMS:
        raise FeatureNotSupported(f"SASL mechanism {mechanism} is not supported", hint=f"Use one of {', '.join(MECHANISMS)}.")
    for name in ("username", "password"):
        if name not in settings:
            raise InvalidParameterValue(f"SASL mechanism {mechanism} needs SASL {name.upper()}")


def _check_pair(settings: ConnectionSettings) -> None:
    """Raises 22023 for a certificate without its key, or a key without its certificate."""
    if ("certificate" in settings) != ("key" in settings):
        raise InvalidParameterValue("SSL CERTIFICATE and SSL KEY belong together")
    if "key_password" in settings and "key" not in settings:
        raise InvalidParameterValue("SSL KEY PASSWORD needs an SSL KEY")


def _settings(
    options: Options, setting_names: dict[str, str], service: str, catalog: Catalog
) -> tuple[dict[str, str | SecretReference | FileReference], tuple[int, ...]]:
    """Returns the settings for options, and the ids of secrets. `setting_names`: option → setting; `service`: for errors."""
    settings: dict[str, str | SecretReference | FileReference] = {}
    secrets: list[int] = []
    for option, value in options:
        setting = setting_names.get(option) or FILES.get(option)
        if setting is None:
            raise FeatureNotSupported(f'option "{option}" of {service} is not supported')
        if setting in settings:
            raise InvalidParameterValue(f'option "{option}" says again what another option says')
        if isinstance(value, SecretName) and option not in FILES and setting not in ("protocol", "mechanism"):
            secrets.append(find_item(Secret, value.name, catalog).id)
            settings[setting] = SecretReference(secrets[-1])
        elif not isinstance(value, str):
            raise InvalidParameterValue(f'option "{option}" needs a text')
        elif option in FILES:
            settings[setting] = FileReference(value)
        elif setting in SECRETS:
            raise InvalidParameterValue(
                f'option "{option}" must be a SECRET', hint=f"CREATE SECRET name AS '…', then write {option} = SECRET name."
            )
        else:
            settings[setting] = value
    return settings, tuple(dict.fromkeys(secrets))


def text(value: OptionValue, option: str) -> str:
    """Returns the value of an option that is a text. Raises 22023 for another value."""
    if not isinstance(value, str) or not value:
        raise InvalidParameterValue(f'option "{option}" needs a text')
    return value
