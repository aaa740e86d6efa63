"""`python tools/prose.py [FOLDER]`: counts prose and names that are probably hard to understand.

Prints a table: one line for each folder, one column for each rule, and the total.

    --show RULE     lists the places that a rule found
    --since COMMIT  looks only at the files that have changed since a commit
    --max N         exits with 1 if the total is above N; otherwise prints the total only

A finding is a place to look at, not a verdict: a clear sentence may stay. Fixtures, recorded files and
generated files are skipped. Needs only Python and git.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PARTICIPLES = frozenset(
    """
    asked begun brought done found given gone heard kept known left_over made meant named put_there said
    seen taken there told wanted
    """.split()
)
OPENERS = re.compile(
    r"^(What|Who|Whoever|Whose|Whatever|Which|One that|One of|Those|That which|As |Where |By |Of |To |In |From |Not |Nothing|Nobody"
    r"|Somebody|It |They |Them|How |All that|None |Also )"
)
PHRASES = re.compile(
    r"\b(whoever|whichever|(is|are) no (?!longer|such)[A-Za-z]+|is told|are told|goes on|go on|went on|of its own|of their own|of our own"
    r"|of ours|in clear|beside (it|them|each|this|that|the|other)|anew|by itself|by themselves|what there is|there is no [a-z]+ of"
    r"|that which|those which|is not to be|is to be|are to be|lies|lie in|comes? of|came of|is due to come|has been said|as it were"
    r"|for nobody|nobody (else )?\w+s|of it is|of them is|is asked|are asked|who asks|who has|who is|who reads|who waits"
    r"|what (came|comes|goes|went|is|was|it|they|a|the|we|has|had|they'd))\b",
    re.IGNORECASE,
)
SKIP = re.compile(
    r"(^|/)(fixtures|golden|recorded)/|\.(jsonl|zip|lock|pgt|avsc)$|(^|/)LICENSE|tests/sql/(corpus|errors)\.txt|mutations\.txt"
)
JAVA_NAME = re.compile(r"\b(?:String|int|long|var|List<[^>]*>|Map<[^>]*>|byte\[\]|boolean)\s+(\w+)\s*[=;,)]")
MARKDOWN_LINE_MAX = 120  # characters
CODE_LINE_MAX = 140  # characters
RULES = ("phrase", "opener", "not-a-verb", "participle", "long-line")


@dataclass(frozen=True)
class Finding:
    """A place to look at: its rule, file, line and text."""

    rule: str
    file: str
    line: int
    text: str

    @property
    def folder(self) -> str:
        """Returns the file's folder, at most two levels deep."""
        return "/".join(self.file.split("/")[:-1][:2]) or "."


def findings(root: Path, since: str | None) -> Iterator[Finding]:
    """Yields the findings of all files that git knows under `root`."""
    command = ["diff", "--name-only", "--relative", "--diff-filter=d", since] if since else ["ls-files"]
    names = subprocess.run(["git", "-C", str(root), *command], capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        look = {".py": python, ".java": java, ".md": markdown}.get(Path(name).suffix)
        if look is not None and not SKIP.search(name):
            yield from look(name, (root / name).read_text(encoding="utf-8"))


def markdown(name: str, text: str) -> Iterator[Finding]:
    """Yields the findings of a page; code blocks and tables are skipped."""
    code = False
    for number, line in enumerate(text.split("\n"), 1):
        code ^= line.startswith("```")
        if code or line.startswith(("|", "    ")):
            continue
        if len(line) > MARKDOWN_LINE_MAX:
            yield Finding("long-line", name, number, f"{len(line)} characters")
        yield from phrases(name, number, line)


def java(name: str, text: str) -> Iterator[Finding]:
    """Yields the findings of a Java file: comments, names of variables, long lines."""
    for match in re.finditer(r"/\*\*?(.*?)\*/|//([^\n]*)", text, re.DOTALL):
        comment = re.sub(r"\n\s*\*", " ", match[1] if match[1] is not None else match[2]).strip()
        number = text.count("\n", 0, match.start()) + 1
        yield from phrases(name, number, comment)
        if OPENERS.match(comment):
            yield Finding("opener", name, number, comment[:60])
    for match in JAVA_NAME.finditer(text):
        if match[1] in PARTICIPLES:
            yield Finding("participle", name, text.count("\n", 0, match.start()) + 1, match[1])
    yield from long_lines(name, text)


def python(name: str, text: str) -> Iterator[Finding]:
    """Yields the findings of a Python file: comments, docstrings, names of variables, long lines."""
    for number, line in enumerate(text.split("\n"), 1):
        comment = re.search(r"(?:^|\s)#\s?(.*)$", line)
        if comment and not re.search(r"""["'].*#""", line):
            yield from phrases(name, number, comment[1].strip())
    yield from long_lines(name, text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from docstring(name, node)
        variable = (
            node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else node.arg if isinstance(node, ast.arg) else ""
        )
        if variable.strip("_") in PARTICIPLES:
            yield Finding("participle", name, getattr(node, "lineno", 1), variable)


def docstring(name: str, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Finding]:
    """Yields the findings of a docstring. That of a function starts with a verb in the third person."""
    text = ast.get_docstring(node)
    if text is None:
        return
    number, first = getattr(node, "lineno", 1), text.split("\n")[0][:60]
    yield from phrases(name, number, text)
    if OPENERS.match(text):
        yield Finding("opener", name, number, first)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("test_"):
        word = re.match(r"[A-Za-z`]+", text)
        if word and not word[0].endswith("s"):
            yield Finding("not-a-verb", name, number, first)


def phrases(name: str, number: int, text: str) -> Iterator[Finding]:
    """Yields a finding for each odd phrase of a text."""
    for match in PHRASES.finditer(text):
        yield Finding("phrase", name, number, match[0])


def long_lines(name: str, text: str) -> Iterator[Finding]:
    """Yields a finding for each line of code that is too long."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > CODE_LINE_MAX:
            yield Finding("long-line", name, number, f"{len(line)} characters")


def table(places: list[Finding]) -> Iterator[str]:
    """Yields the lines of the table of counts."""
    counts = Counter((f.folder, f.rule) for f in places)
    folders = sorted({f.folder for f in places})
    width = max([len(f) for f in folders] + [len("total")])
    yield " ".join([f"{'folder':<{width}}", *(f"{rule:>10}" for rule in RULES), f"{'total':>7}"])
    for folder in [*folders, None]:
        row = [sum(n for (f, r), n in counts.items() if r == rule and folder in (f, None)) for rule in RULES]
        yield " ".join([f"{folder or 'total':<{width}}", *(f"{n:>10}" for n in row), f"{sum(row):>7}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--show", choices=RULES)
    parser.add_argument("--max", type=int)
    parser.add_argument("--since", metavar="COMMIT")
    options = parser.parse_args()
    places = list(findings(options.folder, options.since))
    if options.max is not None and len(places) <= options.max:
        print(f"{len(places)} findings, {options.max} are allowed")
        return 0
    for line in table(places):
        print(line)
    for finding in places:
        if finding.rule == options.show:
            print(f"{finding.file}:{finding.line}: {finding.text}")
    if options.max is not None:
        print(f'{len(places)} findings, {options.max} are allowed: `make prose ARGS="FOLDER --show RULE"` lists them', file=sys.stderr)
    return 0 if options.max is None else 1


if __name__ == "__main__":
    sys.exit(main())
