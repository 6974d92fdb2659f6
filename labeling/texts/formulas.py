r"""LaTeX as plain characters: `x^2 + \frac{1}{2}` reads x² + 1/2. Pure. It reads what school and competition maths is
written in; an unknown command reads as its name, and nothing is ever refused."""

import re

from labeling.texts import symbols

_TOKEN = re.compile(r"\\([A-Za-z]+)\*?\s*|\\(.)|(\s+)|([0-9]+(?:[.,][0-9]+)*)|(.)", re.DOTALL)
_DEEPEST = 12  # braces in braces: more is no title any more
_BINARY = re.compile(r"(?<=[^\s(\[{⟨=<>≤≥≠,;|+−×·/]) ?([+−]) ?(?=[^\s,;)])")
_RELATION = re.compile(r"\s*([=<>])\s*")
_COMMA = re.compile(r"\s*,(?=[^\s\d])")
_NAME = re.compile(r"[a-z]{2,}\Z")
_ENVIRONMENTS = {"pmatrix": "()", "bmatrix": "[]", "vmatrix": "||", "Bmatrix": "{}"}


def plain(tex: str) -> str:
    read = _Reader(tex).until("")
    read = _RELATION.sub(r" \1 ", _COMMA.sub(", ", read))
    read = _BINARY.sub(r" \1 ", read)
    return re.sub(r" +([,.;:)\]⌋⌉⟩])", r"\1", re.sub(r"\s+", " ", read)).replace("( ", "(").strip()


class _Reader:
    def __init__(self, tex: str) -> None:
        self.tokens = list(_TOKEN.finditer(tex))
        self.at = 0
        self.depth = 0

    def until(self, end: str) -> str:
        out = ""
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if end and token[0] == end:
                self.at += 1
                break
            out += self._one(out)
        return out

    def _one(self, before: str) -> str:
        token = self.tokens[self.at]
        self.at += 1
        name, escaped, space, number, character = token.groups()
        if name:
            return self._apart(before, self._command(name))
        if escaped:
            return self._escaped(escaped)
        if space:
            return ""
        if character and character in "^_":
            return self._raised(character, before)
        return number or self._character(character)

    def _escaped(self, escaped: str) -> str:
        if escaped == "!":
            return ""
        if escaped in symbols.SPACES or escaped in "()[]":
            return " "
        return "; " if escaped == "\\" else symbols.ESCAPED.get(escaped, "")

    def _character(self, character: str) -> str:
        if character == "{":
            return self._group()
        return {"-": "−", "~": " ", "&": " ", "}": "", "'": "′", "$": "", "\\": ""}.get(character, character)

    def _raised(self, mark: str, before: str) -> str:
        read = self._argument().strip()
        small = symbols.SUPERSCRIPT if mark == "^" else symbols.SUBSCRIPT
        is_small = all(each in small for each in read)
        raised = "".join(small[each] for each in read) if is_small else f"{mark}{_whole(read)}"
        return f"{raised} " if _NAME.search(before) and self._is_followed_closely() else raised

    def _group(self) -> str:
        if self.depth >= _DEEPEST:
            return ""
        self.depth += 1
        read = self.until("}")
        self.depth -= 1
        return read

    def _argument(self) -> str:
        """What a command is told: a group, or the one thing that follows."""
        self._skip_space()
        if self.at >= len(self.tokens) or self.depth >= _DEEPEST:
            return ""
        number = self.tokens[self.at][4]
        if number and len(number) > 1:  # \frac12 is one half: a digit at a time
            self.tokens[self.at : self.at + 1] = [token for digit in number for token in _TOKEN.finditer(digit)]
        self.depth += 1
        read = self._one("")
        self.depth -= 1
        return read

    def _bracketed(self) -> str:
        self._skip_space()
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "[":
            self.at += 1
            return self.until("]")
        return ""

    def _skip_space(self) -> None:
        while self.at < len(self.tokens) and self.tokens[self.at][3]:
            self.at += 1

    def _command(self, name: str) -> str:
        if name in symbols.PLAIN:
            return self._words() if name.startswith(("text", "mbox", "operatorname")) else self._argument()
        if name in symbols.SILENT or name in symbols.SPACES:
            return " " if name in symbols.SPACES else ""
        if name in symbols.RELATIONS:
            return f" {symbols.RELATIONS[name]} "
        return self._built(name) or symbols.SYMBOLS.get(name) or name

    def _built(self, name: str) -> str:
        if name in ("frac", "dfrac", "tfrac", "cfrac"):
            read = f"{_whole(self._argument())}/{_whole(self._argument())}"
            return f"({read})" if self._is_followed_closely() else read
        if name in ("binom", "dbinom", "tbinom"):
            return f"C({self._argument()}, {self._argument()})"
        if name == "sqrt":
            degree = self._bracketed()
            return symbols.ROOTS.get(degree, f"{degree}√") + _whole(self._argument())
        if name == "pmod":
            return f" (mod {self._argument()})"
        if name == "mathbb":
            letter = self._argument()
            return symbols.BLACKBOARD.get(letter, letter)
        if name in ("begin", "end"):
            brackets = _ENVIRONMENTS.get(self._argument(), "  ")
            return brackets[0] if name == "begin" else brackets[1]
        return ""

    def _is_followed_closely(self) -> bool:
        """By a letter or a number, which would seem to belong to it."""
        self._skip_space()
        return self.at < len(self.tokens) and self.tokens[self.at][0][0].isalnum()

    def _words(self) -> str:
        """Words keep their spaces, which formulas do not have."""
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != "{":
            return self._argument()
        self.at += 1
        out = ""
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token[0] == "}":
                self.at += 1
                break
            out += self._one("") or token[0].strip("{\\")
        return out

    def _apart(self, before: str, read: str) -> str:
        """Names stand apart from what is written next to them: 2 sin x, not 2sinx."""
        if len(read) < 2 or not read.isalpha() or not read.isascii():
            return read
        is_close = self.at < len(self.tokens) and self.tokens[self.at][0] in "^_(["
        is_after = bool(before) and (before[-1].isalnum() or before[-1] == ")")
        return f"{' ' * is_after}{read}{' ' * (not is_close)}"


def _whole(read: str) -> str:
    """In brackets where it would be taken for less than it is."""
    read = read.strip()
    is_one = read.isalnum() or len(read) < 2 or not re.search(r"[\s+−·×/=,<>≤≥]|.[^\W\d_]", read)
    return read if is_one else f"({read})"
