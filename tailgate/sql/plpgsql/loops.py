"""Parses loops, and the statements that end them or their rounds."""

from __future__ import annotations

from collections.abc import Callable

from tailgate.lake.errors import SyntaxError_
from tailgate.sql.lexer.tokens import Token
from tailgate.sql.plpgsql.nodes import Dynamic, Exit, ForEach, ForInteger, ForRows, Loop, Node, Reference, Sql
from tailgate.sql.plpgsql.reader import Frame, Reader, refused

Body = Callable[[], tuple[Node, ...]]  # parses statements up to END

LOOPS = ("loop", "while", "for", "foreach")


def loop(reader: Reader, label: str | None, line: int, body: Body) -> Node:
    """Parses a loop, from its first word to its semicolon."""
    match reader.cursor.any_word(*LOOPS):
        case "for":
            return _for(reader, label, line, body)
        case "foreach":
            return _foreach(reader, label, line, body)
        case "while":
            condition = reader.expression("loop")
            return Loop(condition, _body(reader, label, body), label, line)
    return Loop(None, _body(reader, label, body), label, line)


def _body(reader: Reader, label: str | None, body: Body, *variables: str) -> tuple[Node, ...]:
    """Parses the body of a loop, behind LOOP, and END LOOP."""
    reader.frames.append(Frame(label, is_loop=True, variables=dict.fromkeys(variables, False)))
    reader.deeper(1)
    nodes = body()
    reader.cursor.expect_word("end", "loop")
    reader.frames.pop()
    reader.deeper(-1)
    reader.end_label(label)
    reader.cursor.expect(";")
    return nodes


def _for(reader: Reader, label: str | None, line: int, body: Body) -> Node:
    cursor, start = reader.cursor, reader.cursor.token
    targets = cursor.listed(lambda _: reader.name())
    cursor.expect_word("in")
    if cursor.accept_word("execute"):
        _check_targets(reader, targets, start)
        expression = reader.expression("loop", "using", consume=False)
        using = reader.expressions("loop") if cursor.accept_word("using") else ()
        cursor.expect_word("loop")
        query: Sql | Dynamic = Dynamic(expression, None, using, line)
        return ForRows(tuple(targets), query, _body(reader, label, body), label, line)
    at = cursor.position
    reverse = cursor.accept_word("reverse")
    if _is_range(reader):
        if len(targets) > 1:
            raise SyntaxError_("integer FOR loop must have only one target variable", position=start.position)
        first, last = reader.expression(".."), reader.expression("loop", "by", consume=False)
        step = reader.expression("loop", consume=False) if cursor.accept_word("by") else None
        cursor.expect_word("loop")
        return ForInteger(targets[0][-1], first, last, step, reverse, _body(reader, label, body, targets[0][-1]), label, line)
    if reverse:
        raise SyntaxError_("cannot specify REVERSE in query FOR loop", position=at)
    _check_targets(reader, targets, start)
    text = reader.text_to("loop")
    reader.check(text, at)
    return ForRows(tuple(targets), Sql(text, None, line), _body(reader, label, body), label, line)


def _check_targets(reader: Reader, targets: list[Reference], start: Token) -> None:
    for target in targets:
        try:
            reader.assignable(target, start)
        except SyntaxError_:
            message = "loop variable of loop over rows must be a record variable or list of scalar variables"
            raise SyntaxError_(message, position=start.position) from None


def _is_range(reader: Reader) -> bool:
    """Returns whether `..` comes before LOOP, outside of parentheses."""
    depth = 0
    for token in reader.cursor.tokens[reader.cursor.index :]:
        if token.kind == "operator":
            depth += (token.value in ("(", "[")) - (token.value in (")", "]"))
            if token.value == ".." and not depth:
                return True
        if token.kind == "word" and token.value == "loop" and not depth:
            return False
    return False


def _foreach(reader: Reader, label: str | None, line: int, body: Body) -> ForEach:
    cursor, start = reader.cursor, reader.cursor.token
    target = reader.reference()
    if cursor.at(","):
        raise refused("FOREACH with several variables", start)
    if cursor.at_word("slice"):
        raise refused("SLICE", cursor.token)
    cursor.expect_word("in", "array")
    expression = reader.expression("loop")
    return ForEach(target, expression, _body(reader, label, body), label, line)


def exit_statement(reader: Reader, line: int) -> Exit:
    """Parses EXIT or CONTINUE [label] [WHEN condition]."""
    cursor = reader.cursor
    continues = cursor.any_word("exit", "continue") == "continue"
    label, at = None, cursor.position
    if not cursor.at(";") and not cursor.at_word("when"):
        label = reader.word()
        frame = next((frame for frame in reversed(reader.frames) if frame.label == label), None)
        if frame is None:
            message = f'there is no label "{label}" attached to any block or loop enclosing this statement'
            raise SyntaxError_(message, position=at)
        if continues and not frame.is_loop:
            raise SyntaxError_(f'block label "{label}" cannot be used in CONTINUE', position=at)
    elif not any(frame.is_loop for frame in reader.frames):
        message = "CONTINUE cannot be used outside a loop" if continues else "EXIT cannot be used outside a loop, unless it has a label"
        raise SyntaxError_(message, position=cursor.tokens[cursor.index - 1].position)
    condition = reader.expression(";") if cursor.accept_word("when") else None
    if condition is None:
        cursor.expect(";")
    return Exit(continues, label, condition, line)
