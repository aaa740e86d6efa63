"""Errors of every package: one class per SQLSTATE, named by PostgreSQL's condition name.

There are three kinds of errors. An error of the user's statement has a class of 22, 23, 25, 26, 34,
42, 55 or 0A. An error of the environment has 08, 53, 57 or 58 and may be `retriable`. A defect of
Tailgate has no class here: any other exception reaches the client as XX000.

    raise UndefinedTable(f'relation "{name}" does not exist', position=token.start)

Messages follow PostgreSQL's guide: lower case, no full stop; detail and hint are sentences. `position`
is the 0-based offset of a character in the statement; the wire protocol adds one.

Source: PostgreSQL 15, appendix A, "PostgreSQL Error Codes"; "Error Message Style Guide".
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from typing import ClassVar

BY_SQLSTATE: dict[str, type[TailgateError]] = {}


class TailgateError(Exception):
    """An error with the fields that PostgreSQL reports."""

    sqlstate: ClassVar[str] = "XX000"
    retriable: ClassVar[bool] = False

    def __init_subclass__(cls, *, sqlstate: str | None = None, retriable: bool = False) -> None:
        """Registers the class as the one of its SQLSTATE. A class without the argument is not found by its SQLSTATE."""
        if sqlstate is not None:
            if sqlstate in BY_SQLSTATE:
                raise TypeError(f"SQLSTATE {sqlstate} has two names: {BY_SQLSTATE[sqlstate].__name__}, {cls.__name__}")
            BY_SQLSTATE[sqlstate] = cls
            cls.sqlstate, cls.retriable = sqlstate, retriable

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
        names: Mapping[str, str] | None = None,
        where: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
        self.where = where  # context: the data or the parameter
        self.row: int | None = None  # number of the affected row among those of the statement
        self.names = names or {}  # affected objects, by field letter of the protocol: s schema, t table, c column, n constraint

    def __reduce__(self) -> tuple[Callable[..., TailgateError], tuple[str, str, dict[str, object]]]:
        return _again, (self.sqlstate, self.message, dict(self.__dict__))


def of(sqlstate: str, message: str, *, detail: str | None = None, hint: str | None = None, position: int | None = None) -> TailgateError:
    """Returns an error with a SQLSTATE that is known only as text, for example from a row of a view's errors."""
    kind = BY_SQLSTATE.get(sqlstate)
    if kind is None:
        kind = type("Error" + sqlstate, (TailgateError,), {"sqlstate": sqlstate})
    return kind(message, detail=detail, hint=hint, position=position)


def _again(sqlstate: str, message: str, state: dict[str, object]) -> TailgateError:
    error = of(sqlstate, message)
    error.__dict__.update(state)
    return error


# ---- class 08: the connection


class ProtocolViolation(TailgateError, sqlstate="08P01"): ...


class ConnectionFailure(TailgateError, sqlstate="08006", retriable=True): ...


# ---- class 0A


class FeatureNotSupported(TailgateError, sqlstate="0A000"): ...


class InvalidGrantOperation(TailgateError, sqlstate="0LP01"): ...


# ---- class 21, 22: data


class CardinalityViolation(TailgateError, sqlstate="21000"): ...


class DataException(TailgateError, sqlstate="22000"): ...


class StringDataRightTruncation(TailgateError, sqlstate="22001"): ...


class NumericValueOutOfRange(TailgateError, sqlstate="22003"): ...


class NullValueNotAllowed(TailgateError, sqlstate="22004"): ...


class InvalidDatetimeFormat(TailgateError, sqlstate="22007"): ...


class DatetimeFieldOverflow(TailgateError, sqlstate="22008"): ...


class DivisionByZero(TailgateError, sqlstate="22012"): ...


class CharacterNotInRepertoire(TailgateError, sqlstate="22021"): ...


class InvalidParameterValue(TailgateError, sqlstate="22023"): ...


class InvalidRegularExpression(TailgateError, sqlstate="2201B"): ...


class InvalidRowCountInLimit(TailgateError, sqlstate="2201W"): ...


class InvalidTextRepresentation(TailgateError, sqlstate="22P02"): ...


class InvalidBinaryRepresentation(TailgateError, sqlstate="22P03"): ...


class BadCopyFileFormat(TailgateError, sqlstate="22P04"): ...


# ---- class 23: constraints


class NotNullViolation(TailgateError, sqlstate="23502"): ...


class UniqueViolation(TailgateError, sqlstate="23505"): ...


class CheckViolation(TailgateError, sqlstate="23514"): ...


# ---- class 25, 26, 34, 40: transactions, statements, cursors


class ActiveSqlTransaction(TailgateError, sqlstate="25001"): ...


class ReadOnlySqlTransaction(TailgateError, sqlstate="25006"): ...


class NoActiveSqlTransaction(TailgateError, sqlstate="25P01"): ...


class InFailedSqlTransaction(TailgateError, sqlstate="25P02"): ...


class InvalidSqlStatementName(TailgateError, sqlstate="26000"): ...


class InvalidAuthorizationSpecification(TailgateError, sqlstate="28000"): ...


class InvalidPassword(TailgateError, sqlstate="28P01"): ...


class DependentObjectsStillExist(TailgateError, sqlstate="2BP01"): ...


class InvalidCursorName(TailgateError, sqlstate="34000"): ...


class SerializationFailure(TailgateError, sqlstate="40001", retriable=True): ...


# ---- class 3F: schemas


class InvalidSchemaName(TailgateError, sqlstate="3F000"): ...


# ---- class 42: the statement's text


class InsufficientPrivilege(TailgateError, sqlstate="42501"): ...


class SyntaxError_(TailgateError, sqlstate="42601"): ...


class InvalidName(TailgateError, sqlstate="42602"): ...


class DuplicateColumn(TailgateError, sqlstate="42701"): ...


class AmbiguousColumn(TailgateError, sqlstate="42702"): ...


class DuplicateObject(TailgateError, sqlstate="42710"): ...


class DuplicateSchema(TailgateError, sqlstate="42P06"): ...


class ReservedName(TailgateError, sqlstate="42939"): ...


class UndefinedColumn(TailgateError, sqlstate="42703"): ...


class UndefinedObject(TailgateError, sqlstate="42704"): ...


class DuplicateAlias(TailgateError, sqlstate="42712"): ...


class DuplicateFunction(TailgateError, sqlstate="42723"): ...


class AmbiguousAlias(TailgateError, sqlstate="42P09"): ...


class AmbiguousFunction(TailgateError, sqlstate="42725"): ...


class GroupingError(TailgateError, sqlstate="42803"): ...


class DatatypeMismatch(TailgateError, sqlstate="42804"): ...


class WrongObjectType(TailgateError, sqlstate="42809"): ...


class CannotCoerce(TailgateError, sqlstate="42846"): ...


class UndefinedFunction(TailgateError, sqlstate="42883"): ...


class UndefinedTable(TailgateError, sqlstate="42P01"): ...


class UndefinedParameter(TailgateError, sqlstate="42P02"): ...


class DuplicateCursor(TailgateError, sqlstate="42P03"): ...


class DuplicatePreparedStatement(TailgateError, sqlstate="42P05"): ...


class DuplicateTable(TailgateError, sqlstate="42P07"): ...


class InvalidColumnReference(TailgateError, sqlstate="42P10"): ...


class InvalidFunctionDefinition(TailgateError, sqlstate="42P13"): ...


class InvalidTableDefinition(TailgateError, sqlstate="42P16"): ...


class InvalidObjectDefinition(TailgateError, sqlstate="42P17"): ...


class InvalidRecursion(TailgateError, sqlstate="42P19"): ...


class IndeterminateDatatype(TailgateError, sqlstate="42P18"): ...


# ---- class 53: resources


class ConfigurationLimitExceeded(TailgateError, sqlstate="53400"): ...


class DiskFull(TailgateError, sqlstate="53100", retriable=True): ...


class OutOfMemory(TailgateError, sqlstate="53200"): ...


class TooManyConnections(TailgateError, sqlstate="53300", retriable=True): ...


# ---- class 54, 55: limits and states of objects


class ProgramLimitExceeded(TailgateError, sqlstate="54000"): ...


class StatementTooComplex(TailgateError, sqlstate="54001"): ...


class ObjectNotInPrerequisiteState(TailgateError, sqlstate="55000"): ...


class ObjectInUse(TailgateError, sqlstate="55006"): ...


class CantChangeRuntimeParam(TailgateError, sqlstate="55P02"): ...


# ---- class 57, 58: the operator and the system


class QueryCanceled(TailgateError, sqlstate="57014"): ...


class AdminShutdown(TailgateError, sqlstate="57P01", retriable=True): ...


class CrashShutdown(TailgateError, sqlstate="57P02", retriable=True): ...


class CannotConnectNow(TailgateError, sqlstate="57P03", retriable=True): ...


class SystemError_(TailgateError, sqlstate="58000", retriable=True): ...


class IoError(TailgateError, sqlstate="58030", retriable=True): ...


# ---- errors of the lake, which share a SQLSTATE with others


class Gone(TailgateError):
    """The requested time is below `since`, or the requested entry was removed (R3)."""

    sqlstate = "22023"


class Uncertain(TailgateError):
    """A change may or may not be durable: its name exists, but making it durable failed.

    The process ends. The next start reads the outcome from the disk.
    """

    sqlstate = "58030"


class Replaced(TailgateError):
    """Another writer has taken over the log (W1). This one stops and writes nothing more."""

    sqlstate = "57P01"


def from_system(error: OSError) -> TailgateError | None:
    """Returns the error for a file system that is full, read-only or broken. Returns None for other OSErrors, which may be defects.

    >>> from_system(OSError(errno.ENOSPC, "No space left on device")).sqlstate, from_system(FileNotFoundError(errno.ENOENT, "no such file"))
    ('53100', None)
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"could not write to the data folder: {error.strerror}", hint="Check free disk space.")
    if error.errno in (errno.EIO, errno.EROFS):
        return IoError(f"could not access the data folder: {error.strerror}")
    return None
