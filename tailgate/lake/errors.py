"""Errors of every package: one class per SQLSTATE, named by PostgreSQL's condition name.

There are three kinds of errors. An error of the user's statement has a class of 22, 23, 25, 26, 34,
42, 55 or 0A. An error of the environment has 08, 53, 57 or 58 and may be `retriable`. A defect of ours
has no class here: any other exception reaches the client as XX000.

    raise UndefinedTable(f'relation "{name}" does not exist', position=token.start)

Messages follow PostgreSQL's guide: lower case, no full stop; detail and hint are sentences. `position`
is the 0-based offset of a character in the statement; the wire protocol adds one.

Source: PostgreSQL 15, appendix A, "PostgreSQL Error Codes"; "Error Message Style Guide".
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from typing import ClassVar


class TailgateError(Exception):
    """An error with the fields that PostgreSQL reports."""

    sqlstate: ClassVar[str] = "XX000"
    retriable: ClassVar[bool] = False

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


BY_SQLSTATE: dict[str, type[TailgateError]] = {}


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


def _condition(name: str, sqlstate: str, *, retriable: bool = False) -> type[TailgateError]:
    kind = type(name, (TailgateError,), {"sqlstate": sqlstate, "retriable": retriable, "__module__": __name__})
    if BY_SQLSTATE.setdefault(sqlstate, kind) is not kind:
        raise ValueError(f"SQLSTATE {sqlstate} has two names: {BY_SQLSTATE[sqlstate].__name__}, {name}")
    return kind


# class 08: the connection
ProtocolViolation = _condition("ProtocolViolation", "08P01")
ConnectionFailure = _condition("ConnectionFailure", "08006", retriable=True)
# class 0A
FeatureNotSupported = _condition("FeatureNotSupported", "0A000")
InvalidGrantOperation = _condition("InvalidGrantOperation", "0LP01")
# class 21, 22: data
CardinalityViolation = _condition("CardinalityViolation", "21000")
DataException = _condition("DataException", "22000")
StringDataRightTruncation = _condition("StringDataRightTruncation", "22001")
NumericValueOutOfRange = _condition("NumericValueOutOfRange", "22003")
NullValueNotAllowed = _condition("NullValueNotAllowed", "22004")
InvalidDatetimeFormat = _condition("InvalidDatetimeFormat", "22007")
DatetimeFieldOverflow = _condition("DatetimeFieldOverflow", "22008")
DivisionByZero = _condition("DivisionByZero", "22012")
CharacterNotInRepertoire = _condition("CharacterNotInRepertoire", "22021")
InvalidParameterValue = _condition("InvalidParameterValue", "22023")
InvalidRegularExpression = _condition("InvalidRegularExpression", "2201B")
InvalidRowCountInLimit = _condition("InvalidRowCountInLimit", "2201W")
InvalidTextRepresentation = _condition("InvalidTextRepresentation", "22P02")
InvalidBinaryRepresentation = _condition("InvalidBinaryRepresentation", "22P03")
BadCopyFileFormat = _condition("BadCopyFileFormat", "22P04")
# class 23: constraints
NotNullViolation = _condition("NotNullViolation", "23502")
UniqueViolation = _condition("UniqueViolation", "23505")
CheckViolation = _condition("CheckViolation", "23514")
# class 25, 26, 34, 40: transactions, statements, cursors
ActiveSqlTransaction = _condition("ActiveSqlTransaction", "25001")
ReadOnlySqlTransaction = _condition("ReadOnlySqlTransaction", "25006")
NoActiveSqlTransaction = _condition("NoActiveSqlTransaction", "25P01")
InFailedSqlTransaction = _condition("InFailedSqlTransaction", "25P02")
InvalidSqlStatementName = _condition("InvalidSqlStatementName", "26000")
InvalidAuthorizationSpecification = _condition("InvalidAuthorizationSpecification", "28000")
InvalidPassword = _condition("InvalidPassword", "28P01")
DependentObjectsStillExist = _condition("DependentObjectsStillExist", "2BP01")
InvalidCursorName = _condition("InvalidCursorName", "34000")
SerializationFailure = _condition("SerializationFailure", "40001", retriable=True)
# class 3F: schemas
InvalidSchemaName = _condition("InvalidSchemaName", "3F000")
# class 42: the statement's text
InsufficientPrivilege = _condition("InsufficientPrivilege", "42501")
SyntaxError_ = _condition("SyntaxError_", "42601")
InvalidName = _condition("InvalidName", "42602")
DuplicateColumn = _condition("DuplicateColumn", "42701")
AmbiguousColumn = _condition("AmbiguousColumn", "42702")
DuplicateObject = _condition("DuplicateObject", "42710")
DuplicateSchema = _condition("DuplicateSchema", "42P06")
ReservedName = _condition("ReservedName", "42939")
UndefinedColumn = _condition("UndefinedColumn", "42703")
UndefinedObject = _condition("UndefinedObject", "42704")
DuplicateAlias = _condition("DuplicateAlias", "42712")
DuplicateFunction = _condition("DuplicateFunction", "42723")
AmbiguousAlias = _condition("AmbiguousAlias", "42P09")
AmbiguousFunction = _condition("AmbiguousFunction", "42725")
GroupingError = _condition("GroupingError", "42803")
DatatypeMismatch = _condition("DatatypeMismatch", "42804")
WrongObjectType = _condition("WrongObjectType", "42809")
CannotCoerce = _condition("CannotCoerce", "42846")
UndefinedFunction = _condition("UndefinedFunction", "42883")
UndefinedTable = _condition("UndefinedTable", "42P01")
UndefinedParameter = _condition("UndefinedParameter", "42P02")
DuplicateCursor = _condition("DuplicateCursor", "42P03")
DuplicatePreparedStatement = _condition("DuplicatePreparedStatement", "42P05")
DuplicateTable = _condition("DuplicateTable", "42P07")
InvalidColumnReference = _condition("InvalidColumnReference", "42P10")
InvalidFunctionDefinition = _condition("InvalidFunctionDefinition", "42P13")
InvalidTableDefinition = _condition("InvalidTableDefinition", "42P16")
InvalidObjectDefinition = _condition("InvalidObjectDefinition", "42P17")
InvalidRecursion = _condition("InvalidRecursion", "42P19")
IndeterminateDatatype = _condition("IndeterminateDatatype", "42P18")
# class 53: resources
ConfigurationLimitExceeded = _condition("ConfigurationLimitExceeded", "53400")
DiskFull = _condition("DiskFull", "53100", retriable=True)
OutOfMemory = _condition("OutOfMemory", "53200")
TooManyConnections = _condition("TooManyConnections", "53300", retriable=True)
# class 54, 55: limits and states of objects
ProgramLimitExceeded = _condition("ProgramLimitExceeded", "54000")
StatementTooComplex = _condition("StatementTooComplex", "54001")
ObjectNotInPrerequisiteState = _condition("ObjectNotInPrerequisiteState", "55000")
CantChangeRuntimeParam = _condition("CantChangeRuntimeParam", "55P02")
# class 57, 58: the operator and the system
QueryCanceled = _condition("QueryCanceled", "57014")
AdminShutdown = _condition("AdminShutdown", "57P01", retriable=True)
CrashShutdown = _condition("CrashShutdown", "57P02", retriable=True)
CannotConnectNow = _condition("CannotConnectNow", "57P03", retriable=True)
SystemError_ = _condition("SystemError_", "58000", retriable=True)
IoError = _condition("IoError", "58030", retriable=True)


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
