"""Change rules broken on purpose, one at a time: (file, its text, the text that breaks it). Each has to be caught by the law.

A mutation of Java keeps the shape of its classes, so that a running JVM takes it (engine/java's tests, Mutant); one of Python stays within
functions.
"""

from __future__ import annotations

Mutation = tuple[str, str, str]

JAVA: tuple[Mutation, ...] = (
    # joins
    ("Join", "Math.multiplyExact(mine.weight(), weight)", "mine.weight()"),
    ("Join", "met == partnered ? weight : -weight", "-weight"),
    ("Join", "work.count(other, k) > 0 == partnered", "work.count(other, k) > 1 == partnered"),
    ("Join", "if (!nullSafe[i] && k.isNullAt(i)) return false", "if (k.isNullAt(i)) return false"),
    ("Join", "else if (watched[side] && !partnered)", "else if (watched[side] && partnered)"),
    ("Join", "turned = arrived != 0 &&", "turned = arrived > 0 &&"),
    ("Join", "UUID number = UUID.randomUUID();", "UUID number = new UUID(0, 0);"),
    ("ConditionalJoin", "boolean met = partners + gained > 0;", "boolean met = partners + gained > 1;"),
    ("ConditionalJoin", "if (mine.isNew) mine.partners", "mine.partners"),
    ("ConditionalJoin", "if (met != partners > 0)", "if (met)"),
    ("ConditionalJoin", "if (mine.partners > 0 == partnered)", "if (mine.partners >= 0 == partnered)"),
    ("ConditionalJoin", "condition.error(e), weight)", "condition.error(e), Math.abs(weight))"),
    # groups
    ("Reduce", "emit(tick, k.bytes, old, -1);", "if (next != null) emit(tick, k.bytes, old, -1);"),
    ("Reduce", "if (!always() && now.isZero())", "if (now.isZero())"),
    ("Reduce", "if (rows <= 0 && !always()) return null;", "if (rows < 0 && !always()) return null;"),
    ("Counts", "if (!row.isNullAt(column)) n += weight;", "if (!row.isNullAt(column)) n++;"),
    ("Sums", "if (n == 0) return null;\n      BigDecimal sum", "BigDecimal sum"),
    ("Sums", "plus(other.small, 1);", "small = other.small;"),
    ("Sums", "row.getFloat(column), weight);", "row.getFloat(column), 1);"),
    ("Bits", "trues == n", "trues > 0"),
    ("Bits", "trues += weight", "trues++"),
    ("Bits", "ones[i] += weight", "ones[i]++"),
    ("Moments", "squares = squares.add(times.multiply(value))", "squares = squares.add(value.multiply(value))"),
    ("Moments", "sxy.addProduct(a, b, weight)", "sxy.addProduct(a, b, 1)"),
    ("Moments", "return !function.endsWith(\"_pop\");", "return function.endsWith(\"_pop\");"),
    ("First", "if (lost[0]) best = values.first();", "if (lost[0] && best == null) best = values.first();"),
    ("First", "if (best == null || Arrays.compareUnsigned(value, best) < 0) best = value;", "best = value;"),
    ("Collected", "call.distinct ? 1 : walk.weight()", "1"),
    ("Collected", "if (most[1] > most[0])", "if (most[1] >= most[0])"),
    ("Collected", "Math.ceil(call.fraction * n) - 1", "Math.ceil(call.fraction * n)"),
    ("Collected", "a + (place - low) * (b - a)", "a"),
    ("Collected", "if (weight != 0) kept.weigh(value.bytes, weight);", "if (weight > 0) kept.weigh(value.bytes, weight);"),
    ("Once", "int came = (now > 0 ? 1 : 0) - (now - weight > 0 ? 1 : 0);", "int came = now > 0 ? 1 : 0;"),
    ("Total", "if (!row.isNullAt(filter) && row.getBoolean(filter)) of.add", "if (!row.isNullAt(filter)) of.add"),
    # sets
    ("SetOperation", "Math.max(l - r, 0)", "Math.max(l, 0)"),
    ("SetOperation", "Math.min(l, r)", "Math.max(l, r)"),
    ("SetOperation", "r > 0 != except", "r > 1 != except"),
    # the first rows, windows
    ("TopK", "touched = touched || !old.endsBefore(c.getKey().bytes);", "touched = touched || old.endsBefore(c.getKey().bytes);"),
    ("TopK", "- Math.max(from, seen)", "- seen"),
    ("TopK", "Math.min(weight, seen + weight - from)", "weight"),
    ("TopK", "if (all) net.merge", "if (!all) net.merge"),
    ("TopK", "if (!ties || !SortOrder.begins(place, shown.last))", "if (true)"),
    ("Recompute", "Arrays.compareUnsigned(begin, from) < 0) from = begin", "Arrays.compareUnsigned(begin, from) > 0) from = begin"),
    ("Recompute", "for (long i = 0; i < copies; i++)", "for (long i = 0; i < 1; i++)"),
    ("Recompute", "-> tick.fail(this, error, weight)", "-> tick.fail(this, error, 0)"),
    ("WindowCall", "end.edge.compareTo(Edge.CURRENT_ROW) <= 0", "true"),
    ("PartitionWindow", "(long) peers[i] + 1", "(long) group[i] + 1"),
    ("PartitionWindow", "(double) until[i] / n", "(double) peers[i] / n"),
    ("PartitionWindow", "i - offset : i + offset", "i - offset : i + 1"),
    ("PartitionWindow", "new int[] {a, i, i + 1, b}", "new int[] {a, b, end, end}"),
    ("PartitionWindow", "i + 1 : until[i]", "i + 1 : i + 1"),
    ("PartitionWindow", "groupStart(group[i] + 1 + signed(window.end))", "groupStart(group[i] + signed(window.end))"),
    ("PartitionWindow", "behind && order == 0", "false"),
    ("PartitionWindow", "while (low < start) add(low++, -1);", "while (low < start) add(low++, 0);"),
    ("PartitionWindow", "if (wanted < length)", "if (wanted <= length)"),
    # time
    ("Timer", "if (at > tick.time) {", "if (at >= tick.time) {"),
    ("Timer", "if (at <= tick.time) tick.emit", "if (at < tick.time) tick.emit"),
    ("Timer", "if (!forever) event", "if (!forever && c.weight() > 0) event"),
    ("Timer", "if (until <= from) continue;", ""),
    ("Timer", "@Override boolean everywhere() { return true; }", "@Override boolean everywhere() { return false; }"),
    # edges, state, keys
    ("Linear", "if (n == 0 && by.outer)", "if (false)"),
    ("Tick", "fail(edge.errors, edge.linear.error(e), weight);", "fail(edge.errors, edge.linear.error(e), 1);"),
    ("Tick", "else onward.add(sent.row(to.key(edge.port, shaped)));", "else onward.add(sent.row());"),
    ("Columns", "normalised ? NormalizeFloatingNumbers$.MODULE$.normalize(column) : column", "column"),
    ("SortOrder", "keys[i].nullsFirst() ? NULL_FIRST : NULL_LAST", "NULL_LAST"),
)  # fmt: skip

REWRITES = "engine.plan.rewrites."
PYTHON: tuple[Mutation, ...] = (
    (f"{REWRITES}outer", '(kind == "left" and right)', '(kind == "left" and left)'),
    (f"{REWRITES}outer", "width <= c.argument.index in present", "width <= c.argument.index"),
    (f"{REWRITES}push", "if of[1] and read", "if read"),
    (f"{REWRITES}push", "tuple(substituted(c, keys) for c in down)", "()"),
    (f"{REWRITES}push", "left=_push(relation.left, conditions), right", "left=relation.left, right"),
    (f"{REWRITES}push", "return Union_(tuple(_push(i, conditions) for i in each), columns)", "return Union_(each, columns)"),
    (f"{REWRITES}top", 'max(right.value - (sign == "<"), 0)', "max(right.value - 1, 0)"),
    (f"{REWRITES}top", 'name == "rank"\n', "False\n"),
    (f"{REWRITES}top", "keys = relation.input.keys if isinstance(relation.input, Sort) else ()", "keys = ()"),
    (f"{REWRITES}narrow", "width + n for n, e in enumerate(left)", "width for n, e in enumerate(left)"),
    (f"{REWRITES}order", "columns = left.columns + right.columns", "columns = right.columns + left.columns"),
    (f"{REWRITES}factor", "all(c in a for a in alternatives)", "any(c in a for a in alternatives)"),
    (f"{REWRITES}merge", "conjuncts(node.input.condition) + conjuncts(node.condition)", "conjuncts(node.condition)"),
    (f"{REWRITES}prune", "any(key <= set(found.right) for key in keys(join.right))", "True"),
    (f"{REWRITES}equijoin", "isinstance(condition, Not)))", "False))"),
    (f"{REWRITES}equijoin", "rest = tuple(c for c in conditions if all(c is not k for k, _ in chosen))", "rest = ()"),
    ("engine.plan.temporal", 'after=sign == ">")', "after=True)"),
    ("engine.plan.temporal", 'after=sign != "<")', "after=False)"),
    ("engine.plan.temporal", "_solved(right, FLIPPED[function.name], left)", "_solved(right, function.name, left)"),
    ("engine.plan.compile", "left.append_only and right.append_only\n        if measured", "left.append_only\n        if measured"),
    ("engine.plan.compile", "all(p.append_only for p in parts)", "any(p.append_only for p in parts)"),
    ("engine.plan.compile", 'forever = all(b.kind == "from" for b in found)', "forever = True"),
    ("engine.plan.compile", "return replace(below, columns=columns or below.columns)", "return replace(below, append_only=True)"),
    ("engine.plan.aggregates", "return scalar if condition is None else Case", "return scalar if True else Case"),
)  # fmt: skip
