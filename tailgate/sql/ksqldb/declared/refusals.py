"""Statements and properties of ksqlDB that are parsed and not executed. Each is refused by name, with a hint.

The parser accepts some texts that ksqlDB's grammar rules out, because stored statements of earlier versions may have them.
"""

from __future__ import annotations

import re
from typing import Any

from tailgate.lake.errors import DatatypeMismatch, FeatureNotSupported, InvalidParameterValue
from tailgate.sql.ksqldb import expressions as e
from tailgate.sql.ksqldb import statements as s
from tailgate.sql.ksqldb.declared.defaults import KEY_FORMAT, KEY_FORMATS, TOPIC_PREFIX, VALUE_FORMAT, VALUE_FORMATS, WRAPS
from tailgate.sql.ksqldb.declared.switches import PROPERTIES
from tailgate.sql.ksqldb.limits import LIMITS
from tailgate.sql.lexer.escapes import near

# properties of SET that have an effect, with their values, () for whole numbers and texts; those that have none here
OBEYED: dict[str, tuple[str, ...]] = {
    "auto.offset.reset": ("earliest", "latest"),
    KEY_FORMAT: KEY_FORMATS,
    VALUE_FORMAT: VALUE_FORMATS,
    WRAPS: ("true", "false"),
    TOPIC_PREFIX: (),
    **dict.fromkeys(LIMITS, ()),
    **dict.fromkeys(PROPERTIES, ("true", "false")),
}
OF_STREAMS = """acceptable.recovery.lag auto.offset.reset buffered.records.per.partition cache.max.bytes.buffering client.id
commit.interval.ms default.deserialization.exception.handler default.production.exception.handler default.timestamp.extractor
fetch.min.bytes isolation.level linger.ms max.poll.interval.ms max.poll.records max.task.idle.ms max.warmup.replicas
metadata.max.age.ms metrics.num.samples metrics.recording.level metrics.sample.window.ms num.standby.replicas num.stream.threads
poll.ms probing.rebalance.interval.ms processing.guarantee replication.factor request.timeout.ms retries retry.backoff.ms
rocksdb.config.setter session.timeout.ms state.cleanup.delay.ms state.dir statestore.cache.max.bytes task.timeout.ms
topology.optimization windowstore.changelog.additional.retention.ms""".split()
OF_SERVER = """assert.schema.default.timeout.ms assert.topic.default.timeout.ms cast.strings.preserve.nulls
error.classifier.regex fail.on.deserialization.error fail.on.production.error
idle.connection.timeout.seconds internal.topic.min.insync.replicas
internal.topic.replicas json_sr.converter.deserializer.enabled multicol.key.format.enabled
nested.error.set.null properties.overrides.denylist query.cleanup.shutdown.timeout.ms
query.error.max.queue.size query.persistent.active.limit query.pull.enable.standby.reads query.pull.forwarding.timeout.ms
query.pull.interpreter.enabled query.pull.max.allowed.offset.lag
query.pull.max.concurrent.requests query.pull.max.qps query.pull.metrics.enabled query.pull.range.scan.enabled
query.push.v2.continuation.tokens.enabled query.push.v2.enabled
query.push.v2.registry.installed query.retry.backoff.initial.ms query.retry.backoff.max.ms readonly.topics
runtime.feature.shared.enabled shared.runtimes.count
sink.window.change.log.additional.retention suppress.buffer.size.bytes
timestamp.throw.on.invalid udf.collect.metrics variable.substitution.enable""".split()
STREAMS = "ksql.streams."  # of properties of Kafka Streams, which have a name with and without it
# the beginnings of properties of Kafka's clients and of functions that users define, which have no effect
PREFIXES = ("producer.", "consumer.", "ksql.functions.")
TOKEN = re.compile(r"\w+|.")
IGNORED = frozenset({"compression.type", *OF_STREAMS, *(f"ksql.{n}" for n in OF_SERVER)}) - OBEYED.keys()


def property_name(name: str) -> str:
    """Returns the name of a property in lower case, without the prefix of Kafka Streams.

    >>> property_name("ksql.streams.auto.offset.reset")
    'auto.offset.reset'
    """
    return name.lower().removeprefix(STREAMS)


def is_property(name: str) -> bool:
    """Returns whether there is a property, with or without an effect."""
    short = property_name(name)
    return short in OBEYED or short in IGNORED or short.startswith(PREFIXES)


def check(statement: s.KsqldbStatement, text: str) -> None:
    """Raises 0A000 for a statement that is not executed, and 22023 for an unknown property or value of SET.

    Raises 42601 or 42804 for a part that ksqlDB's grammar rules out. `text`: of the statement.
    """
    for part in e.walk(statement):
        _check_part(part, text)
    refusal = _refusal(statement)
    if refusal is not None:
        what, hint = refusal
        raise FeatureNotSupported(f"{what} is not supported", hint=hint or None, position=0)
    if isinstance(statement, s.SetProperty):
        _check_property(statement)


def _check_part(part: Any, text: str) -> None:
    """Raises 42601 or 42804 for a part of a statement that the parser accepts and ksqlDB's grammar rules out."""
    match part:
        case e.WindowClause(misplaced=at) | e.TypeName(last_comma=at) if at >= 0:
            token = TOKEN.match(text, at)
            assert token is not None
            raise near("syntax error", token.group(), at)
        case e.Constructor("struct", ()):
            message = "Struct constructor cannot be empty. Please supply at least one field."
            raise DatatypeMismatch(message, position=part.position)


def _refusal(statement: s.KsqldbStatement) -> tuple[str, str] | None:
    """Returns the name of a statement that is not executed, with a hint, or None."""
    match statement:
        case s.RunScript():
            return "RUN SCRIPT", "Use \\i in psql."
        case s.SetProperty(system=True):
            return "ALTER SYSTEM", "Use SET in each session."
    return None


def _check_property(statement: s.SetProperty) -> None:
    """Raises 22023 for an unknown property, or for a value that it cannot have."""
    name = property_name(statement.name)
    if not is_property(name):
        raise InvalidParameterValue(
            f"Not recognizable as ksql, streams, consumer, or producer property: '{statement.name}'",
            hint=f"Known: {', '.join(sorted({*OBEYED, *IGNORED}))}.",
            position=statement.position,
        )
    values = OBEYED.get(name, ())
    if statement.value is not None and values and statement.value.lower() not in values:
        raise InvalidParameterValue(
            f"Invalid value {statement.value} for configuration {statement.name}: String must be one of: {', '.join(values)}",
            position=statement.position,
        )
