"""Settings for connections to Kafka or a schema registry, translated for each client library.

    protocol     PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL
    mechanism    PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
    username, password
    ca           certificates (PEM) of the authorities that may sign the server's; the system's if absent
    certificate, key, key_password      our own (PEM)

All are decrypted texts (`lake.catalog.secrets.Vault.opened`). Certificates and keys are passed as text, never
as files.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping

from tailgate.lake.errors import ConnectionFailure, InvalidParameterValue

# names of librdkafka's settings
_LIBRDKAFKA = {
    "protocol": "security.protocol",
    "mechanism": "sasl.mechanisms",
    "username": "sasl.username",
    "password": "sasl.password",
    "ca": "ssl.ca.pem",
    "certificate": "ssl.certificate.pem",
}
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
JAVA_SECRET = ("sasl.jaas.config", "ssl.keystore.key")  # settings of Java clients that must not be shown
EARLIEST_MS = 1  # of the timestamps of messages: librdkafka writes the current time for 0


def librdkafka(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings for confluent_kafka's clients.

    No client creates a topic by asking for it: otherwise a deleted topic comes back, with the broker's number of partitions.
    """
    settings = {"allow.auto.create.topics": "false"} | {_LIBRDKAFKA[name]: value for name, value in options.items() if name in _LIBRDKAFKA}
    if "key" in options:
        settings["ssl.key.pem"] = plain_key(options)
    return settings


def message_time(ms: int | None) -> int:
    """Returns the timestamp of a message for confluent_kafka's producers; that of None is the time at which it is written.

    >>> message_time(None), message_time(0), message_time(1_700_000_000_000)
    (0, 1, 1700000000000)
    """
    return 0 if ms is None else max(ms, EARLIEST_MS)


def java(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings for Kafka's Java clients."""
    settings = {}
    if "protocol" in options:
        settings["security.protocol"] = options["protocol"]
    if "mechanism" in options:
        module = _LOGIN_MODULES[options["mechanism"]]
        user, password = _quoted(options.get("username", "")), _quoted(options.get("password", ""))
        settings["sasl.mechanism"] = options["mechanism"]
        settings["sasl.jaas.config"] = f"{module} required username={user} password={password};"
    if "ca" in options:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": options["ca"]}
    if "key" in options:
        own = {"ssl.keystore.certificate.chain": options.get("certificate", ""), "ssl.keystore.key": plain_key(options)}
        settings |= {"ssl.keystore.type": "PEM", **own}
    return settings


def _quoted(text: str) -> str:
    r"""Returns a text as a string of Java's JAAS configuration.

    >>> _quoted('a"b\\')
    '"a\\"b\\\\"'
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def plain_key(options: Mapping[str, str]) -> str:
    """Returns the private key as PKCS #8 without a password, the only form that all clients read. Raises 22023."""
    from cryptography.hazmat.primitives import serialization

    password = options.get("key_password")
    try:
        key = serialization.load_pem_private_key(options["key"].encode(), password.encode() if password else None)
    except (ValueError, TypeError):
        raise InvalidParameterValue(
            "the private key cannot be read", hint="It is expected as PEM; one with a password needs SSL KEY PASSWORD."
        ) from None
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(*form).decode()


# ---- over HTTP ---------------------------------------------------------------------------------------------------------------------


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A handler that turns a redirect into an HTTPError: the credentials are not meant for its target."""

    def redirect_request(self, *_: object) -> None:
        return None


def shown_url(url: str) -> str:
    """Returns a URL without user and password, query and fragment.

    >>> shown_url("https://ann:x@host:8081/api/")
    'https://host:8081/api'
    """
    parts = urllib.parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


def opener(context: ssl.SSLContext | None) -> urllib.request.OpenerDirector:
    """Returns an opener for requests over HTTP. It raises urllib.error.HTTPError for a redirect and does not follow it."""
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirects())


def refuse_redirect(url: str, answer: urllib.error.HTTPError) -> None:
    """Raises 08006 if a registry's response is a redirect. `url` is the registry without user and password."""
    if 300 <= answer.code < 400:
        target = answer.headers.get("Location")
        raise ConnectionFailure(
            f"schema registry {url} answers {answer.code}, a redirect to {target}, which is not followed",
            hint="Name the registry by its own URL.",
        )


def authorization(username: str | None, password: str | None) -> dict[str, str]:
    """Returns the Authorization header of a request, or no header without a username."""
    if not username:
        return {}
    return {"Authorization": "Basic " + base64.b64encode(f"{username}:{password or ''}".encode()).decode()}


def login(parts: urllib.parse.SplitResult, access: Mapping[str, str]) -> dict[str, str]:
    """Returns the Authorization header for a server: the username of `access`, or that of its URL. No header without one."""
    if "username" in access:
        return authorization(access["username"], access.get("password"))
    return authorization(urllib.parse.unquote(parts.username or ""), urllib.parse.unquote(parts.password or ""))


def tls(options: Mapping[str, str]) -> ssl.SSLContext:
    """Returns the TLS context for a connection. Raises 22023 for invalid certificates."""
    try:
        context = ssl.create_default_context(cadata=options.get("ca"))
        if "key" in options:
            with tempfile.TemporaryDirectory(prefix="tailgate-") as folder:  # mode 0700; the ssl module reads keys only from files
                path = os.path.join(folder, "pair.pem")
                with open(path, "w") as file:
                    file.write(plain_key(options) + "\n" + options.get("certificate", ""))
                context.load_cert_chain(path)
    except (ssl.SSLError, ValueError) as e:
        raise InvalidParameterValue(f"the certificates cannot be read: {e}", hint="They are expected as PEM.") from None
    return context
