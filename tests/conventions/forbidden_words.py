"""No opt-outs without a reason, and no text about one machine, one registry or an issue."""

import io
import re
import tokenize
from collections.abc import Iterator

from tests.conventions.rule import ConventionRule, RuleExample, RuleFinding, is_python

TEXT = (".py", ".md", ".html", ".js", ".css", ".toml", ".yml", ".yaml", ".sh", ".cfg", ".ini", ".txt", ".json")
OPT_OUT = re.compile(r"#\s*(noqa|type:\s*ignore|pragma|fmt:\s*(?:off|skip)|nosec|djlint:\s*off)\b(?P<rest>[^\n]*)")
CODES = re.compile(r"^(\[[\w\-, ]+\])?(:\s*[A-Z]+[0-9]+(,\s*[A-Z]+[0-9]+)*)?")
FORBIDDEN = (
    (
        re.compile(r"\b[Ii]ssue\s+#?\d+|\(#\d+\)|\b(?:fixes|closes)\s+#\d+", re.I),
        "issue numbers mean nothing to readers of the code",
    ),
    (re.compile(r"(?<![\w.~/])/(?:work|root|home)/[\w.]"), "a path of one machine"),
    (re.compile(r"https?://[^\s/]*(?:pypi|registry|mirror|artifact)[^\s/]*", re.I), "the host of one registry"),
    (re.compile(r"--(?:extra-)?index-url|--trusted-host", re.I), "readers choose their own registry"),
)


def is_text(path: str) -> bool:
    return (
        path.endswith(TEXT) or "." not in path.rpartition("/")[2]
    ) and path != "tests/conventions/forbidden_words.py"


def find_unexplained_opt_outs(path: str, text: str) -> Iterator[RuleFinding]:
    if not OPT_OUT.search(text):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        match = OPT_OUT.search(token.string) if token.type == tokenize.COMMENT else None
        if match and not _reason(match["rest"]):
            yield RuleFinding(match[0].strip(), token.start[0], "give the reason beside it")


def _reason(rest: str) -> bool:
    return len(re.findall(r"[a-z]{2,}", CODES.sub("", rest, count=1))) >= 2


def find_unexplained_ignores(path: str, text: str) -> Iterator[RuleFinding]:
    """Find the lines in ignore tables of pyproject.toml without a comment on the line or just above it."""
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(r"ignore\b|\[tool\..*per-file-ignores\]|extend-exclude", line):
            inside = line.rstrip().endswith(("[", "]")) and not line.rstrip().endswith('"]')
            continue
        inside = inside and bool(line.strip()) and line.strip() != "]"
        if inside and "#" not in line:
            yield RuleFinding(line.strip(), number, "give the reason beside it")


def find_forbidden_words(path: str, text: str) -> Iterator[RuleFinding]:
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, what in FORBIDDEN:
            match = pattern.search(line)
            if match:
                yield RuleFinding(match[0], number, f"{match[0]!r}: {what}")


RULES = (
    ConventionRule(
        name="every opt-out has a reason",
        looks_at=is_python,
        find=find_unexplained_opt_outs,
        good=(
            RuleExample("a.py", "import x  # noqa: F401  registers the tasks\n"),
            RuleExample("a.py", "x = y()  # type: ignore[attr-defined]  # ships no types\n"),
        ),
        bad=(
            RuleExample("a.py", "import x  # noqa: F401\n"),
            RuleExample("a.py", "import x  # noqa: F401, E402\n"),
            RuleExample("a.py", "x = y()  # type: ignore[attr-defined]\n"),
            RuleExample("a.py", "x = y()  # type: ignore\n"),
        ),
    ),
    ConventionRule(
        name="every ignored check has a reason",
        looks_at=lambda path: path == "pyproject.toml",
        find=find_unexplained_ignores,
        good=(RuleExample("pyproject.toml", 'ignore = [\n  "S101",  # tests assert\n]\nx = 1\n'),),
        bad=(RuleExample("pyproject.toml", '[tool.ruff.lint.per-file-ignores]\n"tests/**" = ["S"]\n'),),
    ),
    ConventionRule(
        name="texts do not mention machines or issues",
        looks_at=is_text,
        find=find_forbidden_words,
        good=(
            RuleExample("README.md", "See docs/operations.md. `https://docs.python.org/`, color #123456, step #2.\n"),
        ),
        bad=(
            RuleExample("README.md", "as issue 12 asks\n"),
            RuleExample("a.py", "# Fixes #12\n"),
            RuleExample("a.py", "PATH = '/home/me/x'\n"),
            RuleExample("run", "pip install --index-url x\n"),
        ),
    ),
)
