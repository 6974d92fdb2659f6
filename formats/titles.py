"""Make titles of texts: one line of plain characters, for lists that do not typeset formulas.

Formulas are found by the same rule as on the pages (static/js/work/nodes.js), so "$5 and $6" stays a price. LaTeX
becomes plain characters: `x^2 + \\frac{1}{2}` becomes x² + 1/2. This covers school and competition math. Source that
cannot be converted is left out. No text raises an error.
"""

import re

MAX_LENGTH = 120
_READ_CHARACTERS = 1500  # a title is made of the beginning of a text
_BOXED = r"\\boxed\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\}"
_LINES = r"(?:equation|align|alignat|gather)\*?"
_DISPLAYED = rf"\$\$(.+?)\$\$|\\\[(.+?)\\\]|(\\begin\{{{_LINES}\}}.*?\\end\{{{_LINES}\}})"
_IN_LINE = rf"\\\((.+?)\\\)|\$(?!\s)((?:\\.|[^$\\\n]|\n(?!\n))+?)(?<![\s\\])\$(?!\d)|({_BOXED})"
_FORMULA = re.compile(f"{_DISPLAYED}|{_IN_LINE}", re.DOTALL)
# A formula whose end was cut off.
_UNENDED = re.compile(r"(?:\$\$?|\\\[|\\\()(?!\s)([^$]*\\[^$]*)\Z", re.DOTALL)
_FIGURE = re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)", re.DOTALL)
_MARKS = re.compile(r"```[^\n]*|`|\*\*")
_ESCAPED = re.compile(r"\\([$%&#_])")
_SPACE = re.compile(r"\s+")
_PUNCTUATED = re.compile(r" ([,.;:?])(?=\s|\Z)")


def make_title(text: str, length: int = MAX_LENGTH) -> str:
    source = _FIGURE.sub(" ", text[:_READ_CHARACTERS])
    out, end = [], 0
    for match in _FORMULA.finditer(source):
        one, two, three, *in_line = match.groups()
        displayed = one or two or three
        formula = latex_to_text(displayed or next(group for group in in_line if group))
        out += [_strip_marks(source[end : match.start()]), f" {formula} " if displayed else formula]
        end = match.end()
    rest = source[end:]
    unended = _UNENDED.search(rest)
    out.append(_strip_marks(rest[: unended.start()] if unended else rest))
    if unended:
        out.append(latex_to_text(unended[1]))
    return _shorten(_PUNCTUATED.sub(r"\1", _SPACE.sub(" ", "".join(out))).strip(), length)


def _strip_marks(text: str) -> str:
    return _ESCAPED.sub(r"\1", _MARKS.sub("", text))


def _shorten(line: str, length: int) -> str:
    """Shorten a line, at the end of a word if one is near."""
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    word = cut.rfind(" ")
    return (cut[:word] if word > length * 0.7 else cut).rstrip(" ,;:") + "…"


# --- LaTeX -----------------------------------------------------------------------------------------------------------


def _parse_table(text: str) -> dict[str, str]:
    """Parse pairs of a command and its replacement."""
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


def _parse_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SYMBOLS = _parse_table("""
    alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ iota ι kappa κ lambda λ mu μ nu ν xi ξ
    pi π rho ρ sigma σ tau τ phi φ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ
    Phi Φ Psi Ψ Omega Ω ell ℓ hbar ħ
    cdot · times × div ÷ pm ± mp ∓ circ ∘ degree ° prime ′ infty ∞ sum ∑ prod ∏ int ∫ oint ∮ partial ∂ nabla ∇
    angle ∠ triangle △ square □ ldots … dots … cdots … vdots … ddots … dotsc … dotsb … neg ¬ forall ∀ exists ∃
    emptyset ∅ varnothing ∅ cup ∪ cap ∩ setminus ∖ backslash ∖ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ langle ⟨ rangle ⟩
    mid | vert | lvert | rvert | Vert ‖ star ⋆ ast ∗
""")
# Relations get a space on both sides.
RELATIONS = _parse_table("""
    le ≤ leq ≤ leqslant ≤ ge ≥ geq ≥ geqslant ≥ ne ≠ neq ≠ lt < gt > ll ≪ gg ≫ approx ≈ equiv ≡ sim ∼ cong ≅ propto ∝
    to → rightarrow → longrightarrow → leftarrow ← gets ← mapsto ↦ Rightarrow ⇒ implies ⇒ iff ⇔ Leftrightarrow ⇔
    in ∈ notin ∉ subset ⊂ subseteq ⊆ supset ⊃ parallel ∥ perp ⊥ wedge ∧ land ∧ vee ∨ lor ∨ bmod mod
""")
SUPERSCRIPT = dict(zip("0123456789+−=()nixyabcdekmt′∘°", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣʸᵃᵇᶜᵈᵉᵏᵐᵗ′°°", strict=True))
SUBSCRIPT = dict(zip("0123456789+−=()aeijknx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₖₙₓ", strict=True))
BLACKBOARD = dict(zip("RNZQCPF", "ℝℕℤℚℂℙ𝔽", strict=True))
ROOTS = {"": "√", "3": "∛", "4": "∜"}
# Commands that are replaced by their argument.
TRANSPARENT_COMMANDS = _parse_words("""
    text textbf textit textrm texttt mathrm mathbf mathit mathsf mathcal mathscr boldsymbol operatorname boxed fbox
    overline underline widehat hat bar vec tilde overrightarrow underbrace overbrace mbox emph mathop cancel
""")
# Commands that are dropped: they only change the typesetting.
SILENT_COMMANDS = _parse_words("""
    left right middle big Big bigg Bigg bigl bigr displaystyle textstyle scriptstyle limits nolimits hline rm bf it
    phantom hfill notag nonumber
""")
SPACES = frozenset(["quad", "qquad", " ", ",", ";", ":", ">", "~"])
ESCAPED = {"{": "{", "}": "}", "%": "%", "$": "$", "&": "&", "#": "#", "_": "_", "|": "‖"}


_TOKEN = re.compile(r"\\([A-Za-z]+)\*?\s*|\\(.)|(\s+)|([0-9]+(?:[.,][0-9]+)*)|(.)", re.DOTALL)
_DEEPEST = 12  # levels of nested braces that are converted
_BINARY = re.compile(r"(?<=[^\s(\[{⟨=<>≤≥≠,;|+−×·/]) ?([+−]) ?(?=[^\s,;)])")
_RELATION = re.compile(r"\s*([=<>])\s*")
_COMMA = re.compile(r"\s*,(?=[^\s\d])")
_NAME = re.compile(r"[a-z]{2,}\Z")
_ENVIRONMENTS = {"pmatrix": "()", "bmatrix": "[]", "vmatrix": "||", "Bmatrix": "{}"}


def latex_to_text(tex: str) -> str:
    text = _LatexReader(tex).until("")
    text = _RELATION.sub(r" \1 ", _COMMA.sub(", ", text))
    text = _BINARY.sub(r" \1 ", text)
    return re.sub(r" +([,.;:)\]⌋⌉⟩])", r"\1", re.sub(r"\s+", " ", text)).replace("( ", "(").strip()


class _LatexReader:
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
        if escaped in SPACES or escaped in "()[]":
            return " "
        return "; " if escaped == "\\" else ESCAPED.get(escaped, "")

    def _character(self, character: str) -> str:
        if character == "{":
            return self._group()
        return {"-": "−", "~": " ", "&": " ", "}": "", "'": "′", "$": "", "\\": ""}.get(character, character)

    def _raised(self, mark: str, before: str) -> str:
        text = self._argument().strip()
        small = SUPERSCRIPT if mark == "^" else SUBSCRIPT
        is_small = all(each in small for each in text)
        raised = "".join(small[each] for each in text) if is_small else f"{mark}{_bracket_if_compound(text)}"
        return f"{raised} " if _NAME.search(before) and self._is_followed_closely() else raised

    def _group(self) -> str:
        if self.depth >= _DEEPEST:
            return ""
        self.depth += 1
        text = self.until("}")
        self.depth -= 1
        return text

    def _argument(self) -> str:
        """Read the argument of a command: a group or a single token."""
        self._skip_space()
        if self.at >= len(self.tokens) or self.depth >= _DEEPEST:
            return ""
        number = self.tokens[self.at][4]
        if number and len(number) > 1:  # \frac12 is one half: an argument is one digit
            self.tokens[self.at : self.at + 1] = [token for digit in number for token in _TOKEN.finditer(digit)]
        self.depth += 1
        text = self._one("")
        self.depth -= 1
        return text

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
        if name in TRANSPARENT_COMMANDS:
            return self._words() if name.startswith(("text", "mbox", "operatorname")) else self._argument()
        if name in SILENT_COMMANDS or name in SPACES:
            return " " if name in SPACES else ""
        if name in RELATIONS:
            return f" {RELATIONS[name]} "
        return self._built(name) or SYMBOLS.get(name) or name

    def _built(self, name: str) -> str:
        if name in ("frac", "dfrac", "tfrac", "cfrac"):
            text = f"{_bracket_if_compound(self._argument())}/{_bracket_if_compound(self._argument())}"
            return f"({text})" if self._is_followed_closely() else text
        if name in ("binom", "dbinom", "tbinom"):
            return f"C({self._argument()}, {self._argument()})"
        if name == "sqrt":
            degree = self._bracketed()
            return ROOTS.get(degree, f"{degree}√") + _bracket_if_compound(self._argument())
        if name == "pmod":
            return f" (mod {self._argument()})"
        if name == "mathbb":
            letter = self._argument()
            return BLACKBOARD.get(letter, letter)
        if name in ("begin", "end"):
            brackets = _ENVIRONMENTS.get(self._argument(), "  ")
            return brackets[0] if name == "begin" else brackets[1]
        return ""

    def _is_followed_closely(self) -> bool:
        """Tell whether a letter or digit follows directly, which would then look like a part of this expression."""
        self._skip_space()
        return self.at < len(self.tokens) and self.tokens[self.at][0][0].isalnum()

    def _words(self) -> str:
        """Read a group of words, in which spaces count, unlike in formulas."""
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

    def _apart(self, before: str, text: str) -> str:
        """Separate a name from its neighbors by spaces: 2 sin x, not 2sinx."""
        if len(text) < 2 or not text.isalpha() or not text.isascii():
            return text
        is_close = self.at < len(self.tokens) and self.tokens[self.at][0] in "^_(["
        is_after = bool(before) and (before[-1].isalnum() or before[-1] == ")")
        return f"{' ' * is_after}{text}{' ' * (not is_close)}"


def _bracket_if_compound(text: str) -> str:
    """Put an expression in parentheses unless it is a single term."""
    text = text.strip()
    is_single = text.isalnum() or len(text) < 2 or not re.search(r"[\s+−·×/=,<>≤≥]|.[^\W\d_]", text)
    return text if is_single else f"({text})"
