"""The functions that return the definitions and descriptions of objects (pg_get_viewdef, obj_description, …)."""

from __future__ import annotations

from collections.abc import Callable

from tailgate.gateway.catalog.functions import fixed_names
from tailgate.gateway.catalog.functions.context import FunctionContext, FunctionGroup, Listed, nothing
from tailgate.gateway.catalog.functions.identifiers import IdentifierFunctions
from tailgate.gateway.catalog.relations import constraint_rows, rows
from tailgate.gateway.catalog.relations.signatures import Signature, index_definitions, signatures
from tailgate.lake.catalog import Function, Item, Sequence, Table, View
from tailgate.lake.catalog.functions import arguments_of, result_of
from tailgate.lake.catalog.indexes import definition, element_texts
from tailgate.lake.catalog.names import Name, quoted
from tailgate.lake.catalog.roles import PUBLIC_ID
from tailgate.lake.catalog.schemas import is_system
from tailgate.lake.errors import UndefinedColumn
from tailgate.sql.binder.writes.updatable_views import updatable
from tailgate.sql.definitions import for_search_path

# the checks of the domains of information_schema, by the oid of the constraint: as they are printed without and with `pretty`
DOMAINS = {
    13139: ("CHECK ((VALUE >= 0))", "CHECK (VALUE >= 0)"),
    13152: (
        "CHECK (((VALUE)::text = ANY ((ARRAY['YES'::character varying, 'NO'::character varying])::text[])))",
        "CHECK (VALUE::text = ANY (ARRAY['YES'::character varying, 'NO'::character varying]::text[]))",
    ),
}


class DefinitionFunctions(FunctionGroup):
    """Definitions and descriptions of the catalog's objects."""

    def __init__(self, context: FunctionContext, names: IdentifierFunctions) -> None:
        super().__init__(context)
        self._names = names

    def listed(self) -> list[Listed]:
        """Returns the functions."""
        s = self
        return [
            ("pg_get_viewdef(oid) text", s.viewdef),
            ("pg_get_viewdef(oid, bool) text", s.viewdef),
            ("pg_get_viewdef_text(text) text", lambda t: s.viewdef(s._names.regclass_in(t))),
            ("pg_get_ruledef(oid, bool) text", s.ruledef),
            ("pg_get_ruledef(oid) text", s.ruledef),
            ("pg_get_indexdef(oid) text", s.indexdef),
            ("pg_get_indexdef(oid, int, bool) text", s.indexdef),
            ("pg_get_constraintdef(oid) text", s.constraintdef),
            ("pg_get_constraintdef(oid, bool) text", s.constraintdef),
            ("pg_get_expr(text, oid) text", lambda e, o: e),
            ("pg_get_expr(text, oid, bool) text", lambda e, o, pretty: constraint_rows.without_parentheses(e) if pretty else e),
            ("pg_get_partkeydef(oid) text", nothing),
            ("pg_get_partition_constraintdef(oid) text", nothing),
            ("pg_get_serial_sequence(text, text) text", s.serial_sequence),
            ("pg_sequence_last_value(oid) bigint", s.last_value),
            ("pg_get_statisticsobjdef_columns(oid) text", nothing),
            ("pg_get_statisticsobjdef(oid) text", nothing),
            ("pg_get_triggerdef(oid, bool) text", nothing),
            ("pg_get_function_arguments(oid) text", s._of_function(arguments_of, lambda f: f.arguments(s._names.format_type))),
            ("pg_get_function_result(oid) text", s._of_function(result_of, lambda f: f.returns(s._names.format_type))),
            (
                "pg_get_function_identity_arguments(oid) text",
                s._of_function(lambda i: arguments_of(i, defaults=False), lambda f: f.arguments(s._names.format_type, defaults=False)),
            ),
            ("pg_get_functiondef(oid) text", s._of_function(lambda i: for_search_path(i, s.catalog).sql, lambda f: None)),
            ("obj_description(oid, text) text", s.obj_description),
            ("obj_description(oid) text", s.any_description),
            ("col_description(oid, int) text", lambda o, n: s.facts.descriptions.get((rows.CLASS, o, n))),
            ("shobj_description(oid, text) text", s.shobj_description),
            ("pg_get_function_sqlbody(oid) text", nothing),
            ("pg_relation_is_updatable(oid, bool) int", s.relation_is_updatable),
            ("pg_column_is_updatable(oid, int, bool) bool", s.column_is_updatable),
        ]

    def viewdef(self, oid: int, pretty: bool = False) -> str | None:
        item = self.facts.item(oid)
        return None if item is None or not item.query else f" {for_search_path(item, self.catalog).query.strip().rstrip(';')};"

    def serial_sequence(self, table: str, column: str) -> str | None:
        """Returns the name of the sequence that a column owns. Raises 42P01, 42703."""
        item = self.facts.item(self._names.regclass_in(table))
        if item is None or column not in [c.name for c in item.columns]:
            raise UndefinedColumn(f'column "{column}" of relation "{table if item is None else item.name}" does not exist')
        sequences = self.facts.catalog.each(Sequence)
        return next((self._qualified(i) for i in sequences if i.column == column and i.depends == (item.id,)), None)

    def last_value(self, oid: int) -> int | None:
        """Returns the last reserved value of a sequence, or None before the first."""
        item = self.facts.catalog.items.get(oid)
        return item.position if isinstance(item, Sequence) and item.called else None

    def relation_is_updatable(self, oid: int, include_triggers: bool) -> int:
        """Returns the events that a relation allows: 4 for UPDATE, 8 for INSERT, 16 for DELETE."""
        item = self.facts.item(oid)
        if isinstance(item, View):
            return self._updatable(item)[0]
        return 28 if isinstance(item, Table) and not is_system(item.id) else 0

    def column_is_updatable(self, oid: int, column: int, include_triggers: bool) -> bool:
        """Returns whether UPDATE can change a column and DELETE can remove its row."""
        item = self.facts.item(oid)
        if not isinstance(item, View):
            return column > 0 and self.relation_is_updatable(oid, include_triggers) == 28
        return 0 < column <= len(item.columns) and item.columns[column - 1].name in self._updatable(item)[1]

    def _updatable(self, view: View) -> tuple[int, frozenset[str]]:
        computed = self.facts.updatable
        if view.id not in computed:
            computed[view.id] = updatable(view, self.facts.catalog)
        return computed[view.id]

    def ruledef(self, oid: int, pretty: bool = False) -> str | None:
        item = self.facts.item(oid - rows.RULES)
        if item is None:
            return None
        return f'CREATE RULE "_RETURN" AS\n    ON SELECT TO {self._qualified(item)} DO INSTEAD {self.viewdef(item.id)}'

    def _qualified(self, item: Item) -> str:
        return Name(item.name, self.facts.catalog.schema_of(item).name).sql

    def indexdef(self, oid: int, column: int = 0, pretty: bool = False) -> str | None:
        if oid in index_definitions():
            return self._fixed_index(oid, column, pretty)
        entry = self.facts.indexes.get(oid)
        if entry is None:
            return None
        if column:
            texts = element_texts(entry.index, entry.relation, pretty=pretty)
            texts += [quoted(entry.relation.columns[i].name) for i in entry.index.include]
            return texts[column - 1] if column <= len(texts) else ""
        table = self._names.regclass_out(entry.relation.id) if pretty else self._qualified(entry.relation)
        return definition(entry.index, table, entry.relation, pretty=pretty)

    def _fixed_index(self, oid: int, column: int, pretty: bool) -> str:
        """Returns the definition of one of PostgreSQL's own indexes."""
        unique, relation, names = index_definitions()[oid]
        columns = [quoted(name) for name in names]
        if column:
            return columns[column - 1] if column <= len(columns) else ""
        schema = quoted(self.facts.namespaces[self.facts.classes[relation][1]])
        table = self._names.regclass_out(relation) if pretty else f"{schema}.{quoted(self.facts.classes[relation][0])}"
        kind = "UNIQUE INDEX" if unique else "INDEX"
        return f"CREATE {kind} {quoted(self.facts.classes[oid][0])} ON {table} USING btree ({', '.join(columns)})"

    def _of_function(self, definition: Callable[[Function], str], fixed: Callable[[Signature], str | None]) -> Callable[[int], str | None]:
        """Returns a function from an oid to text: by `definition` for created functions, by `fixed` for PostgreSQL's own."""

        def by_oid(oid: int) -> str | None:
            if oid in signatures():
                return fixed(signatures()[oid])
            item = self.facts.item(oid)
            return definition(item) if item is not None and isinstance(item, Function) else None

        return by_oid

    def constraintdef(self, oid: int, pretty: bool = False) -> str | None:
        if (index := fixed_names.constraints().get(oid)) is not None:
            word, names = index
            return f"{word} ({', '.join(map(quoted, names))})"
        if oid in DOMAINS:
            return DOMAINS[oid][pretty]
        return constraint_rows.definition(oid, self.catalog, pretty=pretty)  # whose search path decides which names have a schema

    def obj_description(self, oid: int, catalog: str) -> str | None:
        kind = self.facts.by_name.get((11, catalog))
        return None if kind is None else self.facts.descriptions.get((kind, oid, 0))

    def any_description(self, oid: int) -> str | None:
        """Returns the description of a relation, function, schema or constraint with this oid."""
        classes = (rows.CLASS, rows.PROC, rows.NAMESPACE, rows.CONSTRAINT)
        return next((text for kind in classes if (text := self.facts.descriptions.get((kind, oid, 0))) is not None), None)

    def shobj_description(self, oid: int, catalog: str) -> str | None:
        """Returns the comment of a role or a database. That of the session's database is with PUBLIC."""
        roles, role = self.facts.catalog.all_roles(), None
        if catalog == "pg_database" and oid == self._session.database_oid:
            role = roles[PUBLIC_ID]
        elif catalog == "pg_authid" and oid != PUBLIC_ID:
            role = roles.get(oid)
        if role is not None and role.comment:
            return role.comment
        return fixed_names.shared_descriptions().get((self.facts.by_name.get((11, catalog), 0), oid))
