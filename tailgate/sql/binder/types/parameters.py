"""The types of a statement's parameters."""

from __future__ import annotations

from dataclasses import replace

from tailgate.lake.errors import AmbiguousParameter, UndefinedParameter
from tailgate.lake.types import GENERAL, UNKNOWN, Type
from tailgate.sql.lexer.tokens import INTEGER_DIGITS_MAX
from tailgate.sql.numeric_types import may_be_general, of_array_literal
from tailgate.sql.plan import Parameter

PARAMETERS_MAX = 65_535  # the maximum of a Bind message


def parameter_number(digits: str, position: int | None = None) -> int:
    """Returns the number of a parameter, whose text is $ and these digits. Raises 42P02 for one that no Bind message has."""
    if len(digits) > INTEGER_DIGITS_MAX or not 1 <= int(digits) <= PARAMETERS_MAX:
        raise UndefinedParameter(f"there is no parameter ${digits}", position=position)
    return int(digits)


class Parameters:
    """The types of the parameters $1, $2, …: given, or inferred from their first use."""

    def __init__(self, types: tuple[Type, ...] = (), allowed: bool = False) -> None:
        self.types: list[Type] = list(types)
        self.allowed = allowed

    def at(self, number: int, position: int | None) -> Parameter:
        """Returns parameter `number`; the first is 1.

        Its type is unknown until it is given or inferred.
        """
        while len(self.types) < number:
            self.types.append(UNKNOWN)
        self.types[number - 1] = _settled(self.types[number - 1])
        return Parameter(number, self.types[number - 1], position)

    def settle(self, parameter: Parameter, type: Type) -> Parameter:
        """Gives a parameter its type. Raises 42P08 if it already has another one."""
        type = _settled(type)
        current = self.types[parameter.number - 1]
        if current == UNKNOWN:
            self.types[parameter.number - 1] = current = type
        elif current != type:
            raise AmbiguousParameter(
                f"inconsistent types deduced for parameter ${parameter.number}",
                detail=f"{current} versus {type}",
                position=parameter.position,
            )
        return replace(parameter, type=current)


def _settled(type: Type) -> Type:
    """Returns the type of a parameter: a numeric may have any scale, unless the rules have no general numerics."""
    if type.name != "numeric" or type.modifiers:
        return type
    if type.is_array:
        return of_array_literal(type)
    return GENERAL if may_be_general() else type
