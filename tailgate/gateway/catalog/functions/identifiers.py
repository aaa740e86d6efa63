"""The functions that convert between names and oids (regclass, format_type, …), and those about the search path."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tailgate.gateway.catalog.functions.context import FunctionGroup, Listed, yes
from tailgate.gateway.catalog.functions.object_names import ALIASES, SQL_NAMES, WITHOUT_LENGTH, name_text, parse_name
from tailgate.gateway.catalog.relations import rows
from tailgate.gateway.catalog.relations.signatures import signatures
from tailgate.lake.catalog.names import quoted
from tailgate.lake.catalog.schemas import TEMPORARY, TEMPORARY_ID
from tailgate.lake.errors import InvalidSchemaName, NumericValueOutOfRange, UndefinedFunction, UndefinedObject, UndefinedTable
from tailgate.lake.intervals import interval_name
from tailgate.lake.types import OID
from tailgate.values.registry import read_text

VISIBLE = ("ts_config", "ts_dict", "ts_parser", "ts_template", "opfamily", "conversion")


class IdentifierFunctions(FunctionGroup):
    """Names, oids and visibility of the catalog's objects."""

    def listed(self) -> list[Listed]:
        """Returns the functions."""
        s = self
        return [
            ("format_type(oid, int) text", s.format_type),
            ("regclass_out(oid) text", s.regclass_out),
            ("regtype_out(oid) text", s.regtype_out),
            ("regproc_out(oid) text", lambda o: "-" if o == 0 else s.facts.functions.get(o, (str(o),))[0]),
            ("regprocedure_out(oid) text", s.regprocedure_out),
            ("regnamespace_out(oid) text", s.regnamespace_out),
            ("regrole_out(oid) text", s.regrole_out),
            *((f"{reg}_out(oid) text", str) for reg in ("regconfig", "regdictionary")),  # Tailgate has no text search
            ("regclass_in(text) oid", s.regclass_in),
            ("regtype_in(text) oid", s.regtype_in),
            ("regproc_in(text) oid", s.regproc_in),
            ("regnamespace_in(text) oid", s.regnamespace_in),
            ("regrole_in(text) oid", s.regrole_in),
            ("to_regclass(text) oid", lambda t: s._or_none(s.regclass_in, t)),
            ("to_regtype(text) oid", lambda t: s._or_none(s.regtype_in, t)),
            ("to_regproc(text) oid", lambda t: s._or_none(s.regproc_in, t)),
            ("to_regnamespace(text) oid", lambda t: s._or_none(s.regnamespace_in, t)),
            ("pg_get_userbyid(oid) text", lambda o: s.roles.get(o, f"unknown (OID={o})")),
            ("pg_table_is_visible(oid) bool", s._visible_class),
            ("pg_type_is_visible(oid) bool", lambda o: s._visible(s.facts.types.get(o), 1)),
            ("pg_function_is_visible(oid) bool", lambda o: s._visible(s.facts.functions.get(o), 1)),
            ("pg_collation_is_visible(oid) bool", yes),
            ("pg_opclass_is_visible(oid) bool", yes),
            ("pg_operator_is_visible(oid) bool", yes),
            *((f"pg_{kind}_is_visible(oid) bool", yes) for kind in VISIBLE),
            ("pg_statistics_obj_is_visible(oid) bool", yes),
            ("current_schemas(bool) text[]", s.current_schemas),
            ("current_schema() text", s.current_schema),
            ("pg_my_temp_schema() oid", lambda: TEMPORARY_ID if TEMPORARY_ID in s.path() else 0),
            ("pg_is_other_temp_schema(oid) bool", lambda o: False),
            ("quote_ident(text) text", quoted),
            ("pg_describe_object(oid, oid, int) text", s.described),
            ("parse_ident(text) text[]", parse_name),
        ]

    def format_type(self, oid: int | None, typmod: int | None = None) -> str | None:
        if oid is None:
            return None
        if oid == 0:
            return "-"
        type_row = self.facts.types.get(oid)
        if type_row is None:
            return "???"
        name, namespace, element, _ = type_row
        if element and name.startswith("_"):
            return f"{self.format_type(element, typmod)}[]"
        text = SQL_NAMES.get(oid) or (
            quoted(name) if self._visible(type_row, 1) else f"{quoted(self.facts.namespaces[namespace])}.{quoted(name)}"
        )
        if typmod is not None and typmod < 0:  # without a length, the words character and bit mean one character or bit
            return WITHOUT_LENGTH.get(oid, text)
        if typmod is not None:
            if oid in (1042, 1043):
                return f"{text}({typmod - 4})"
            if oid == 1700 and typmod >= 4:
                return f"{text}({(typmod - 4) >> 16 & 0xFFFF},{((typmod - 4) & 0x7FF ^ 1024) - 1024})"
            if oid in (1083, 1114, 1184, 1266):
                first, _, rest = text.partition(" ")
                return f"{first}({typmod}) {rest}"
            if oid == 1186:
                return interval_name(typmod)
            if oid in (1560, 1562):
                return f"{text}({typmod})"
        return text

    def regtype_out(self, oid: int) -> str | None:
        return self.format_type(oid) if oid == 0 or oid in self.facts.types else str(oid)

    def regclass_out(self, oid: int) -> str:
        class_row = self.facts.classes.get(oid)
        if class_row is None:
            return "-" if oid == 0 else str(oid)
        name, namespace, _ = class_row
        return quoted(name) if self._visible_class(oid) else f"{quoted(self.facts.namespaces[namespace])}.{quoted(name)}"

    def regnamespace_out(self, oid: int) -> str:
        if oid not in self.facts.namespaces:
            return "-" if oid == 0 else str(oid)
        return quoted(self.facts.namespaces[oid])

    def regclass_in(self, text: str) -> int:
        if (oid := _number(text)) is not None:
            return oid
        parts = parse_name(text)
        for namespace in self.path() if len(parts) == 1 else [self.namespace(parts[-2])]:
            if (namespace, parts[-1]) in self.facts.by_name:
                return self.facts.by_name[namespace, parts[-1]]
        raise UndefinedTable(f'relation "{".".join(parts)}" does not exist')

    def regtype_in(self, text: str) -> int:
        if (oid := _number(text)) is not None:
            return oid
        name = " ".join(name_text(text).split())
        base = re.sub(r"\s*\([^)]*\)", "", name.removesuffix("[]"))
        folded = base if base.startswith('"') and base != '"char"' else base.lower()
        oid = ALIASES.get(folded) or self.facts.type_by_name.get(parse_name(base)[-1])
        if oid is None:
            raise UndefinedObject(f'type "{text}" does not exist')
        if name.endswith("[]"):
            return next(o for o, (n, _, element, _) in self.facts.types.items() if element == oid and n.startswith("_"))
        return oid

    def regproc_in(self, text: str) -> int:
        if (oid := _number(text)) is not None:
            return oid
        called, _, types = text.partition("(")
        name = parse_name(called)[-1]
        oids = [oid for oid, (n, _) in self.facts.functions.items() if n == name]
        if types:  # a regprocedure names the argument types
            argument_types = tuple(self.regtype_in(word.strip()) for word in types.strip(" )").split(",") if word.strip())
            oids = [oid for oid in oids if oid not in signatures() or signatures()[oid].inputs == argument_types]
        if not oids:
            raise UndefinedFunction(f'function "{text}" does not exist')
        return oids[0]

    def regprocedure_out(self, oid: int) -> str:
        if oid not in self.facts.functions:
            return "-" if oid == 0 else str(oid)
        signature = signatures().get(oid)
        types = [str(self.format_type(type)) for type in signature.inputs] if signature is not None else []
        return f"{quoted(self.facts.functions[oid][0])}({','.join(types)})"

    def regnamespace_in(self, text: str) -> int:
        oid = _number(text)
        return self.namespace(parse_name(text)[-1]) if oid is None else oid

    def namespace(self, name: str) -> int:
        """Returns the oid of a schema. Raises 3F000."""
        schema = self.catalog.find_schema(name)
        oid = schema.id if schema is not None else next((o for o, n in self.facts.namespaces.items() if n == name), None)
        if oid is None:
            raise InvalidSchemaName(f'schema "{name}" does not exist')
        return oid

    def path(self) -> list[int]:
        """Returns the schemas of the search path in order.

        pg_catalog comes first, or after temporary views, unless the path names it.
        """
        catalog = self.catalog
        if self.context.path is not None:
            return self.context.path
        schemas = [schema.id for schema in map(catalog.find_schema, catalog.path) if schema is not None]
        if 11 not in schemas:
            schemas.insert(int(schemas[:1] == [TEMPORARY_ID]), 11)
        self.context.path = schemas
        return schemas

    def current_schemas(self, implicit: bool) -> list[str]:
        if implicit:
            return [self.facts.namespaces[o] for o in self.path()]
        return [p for p in self.catalog.path if not p.startswith(TEMPORARY)]

    def current_schema(self) -> str | None:
        return next(iter(self.current_schemas(False)), None)

    def _visible_class(self, oid: int) -> bool | None:
        class_row = self.facts.classes.get(oid)
        if class_row is None:
            return None
        return next((self.facts.by_name[n, class_row[0]] for n in self.path() if (n, class_row[0]) in self.facts.by_name), None) == oid

    def regrole_out(self, oid: int) -> str:
        return "-" if oid == 0 else quoted(self.roles[oid]) if oid in self.roles else str(oid)

    def regrole_in(self, text: str) -> int:
        name = parse_name(text)[-1]
        oid = next((o for o, n in self.roles.items() if n == name), None)
        if oid is None:
            raise UndefinedObject(f'role "{text}" does not exist')
        return oid

    def _or_none(self, function: Callable[[str], int], text: str) -> int | None:
        try:
            return function(text)
        except (UndefinedTable, UndefinedObject, UndefinedFunction, InvalidSchemaName, NumericValueOutOfRange):
            return None

    def _visible(self, row: tuple[Any, ...] | None, namespace: int) -> bool | None:
        return None if row is None else row[namespace] in self.path()

    def described(self, kind: int, oid: int, part: int) -> str:
        """Implements pg_describe_object, for members of extensions."""
        words = {1255: "function", 2612: "language"}
        if kind in words:
            return f"{words[kind]} {self.facts.functions[oid][0] + '()' if oid in self.facts.functions else 'plpgsql'}"
        return f"table {self.regclass_out(oid)}" if kind == rows.CLASS else f"object {oid}"


def _number(text: str) -> int | None:
    """Returns the oid that a text is instead of a name, or None. Raises 22003 for a number that is too large."""
    oid = read_text(text, OID) if text.isascii() and text.isdecimal() else None
    return oid if isinstance(oid, int) else None
