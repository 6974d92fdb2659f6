"""What LaTeX commands look like as plain characters."""

import re


def _parse_table(text: str) -> dict[str, str]:
    """Commands, each before what it looks like."""
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
# These stand between two sides, with a space on both.
RELATIONS = _parse_table("""
    le ≤ leq ≤ leqslant ≤ ge ≥ geq ≥ geqslant ≥ ne ≠ neq ≠ lt < gt > ll ≪ gg ≫ approx ≈ equiv ≡ sim ∼ cong ≅ propto ∝
    to → rightarrow → longrightarrow → leftarrow ← gets ← mapsto ↦ Rightarrow ⇒ implies ⇒ iff ⇔ Leftrightarrow ⇔
    in ∈ notin ∉ subset ⊂ subseteq ⊆ supset ⊃ parallel ∥ perp ⊥ wedge ∧ land ∧ vee ∨ lor ∨ bmod mod
""")
SUPERSCRIPT = dict(zip("0123456789+−=()nixyabcdekmt′∘°", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣʸᵃᵇᶜᵈᵉᵏᵐᵗ′°°", strict=True))
SUBSCRIPT = dict(zip("0123456789+−=()aeijknx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₖₙₓ", strict=True))
BLACKBOARD = dict(zip("RNZQCPF", "ℝℕℤℚℂℙ𝔽", strict=True))
ROOTS = {"": "√", "3": "∛", "4": "∜"}
# What they are told stands as it is.
TRANSPARENT_COMMANDS = _parse_words("""
    text textbf textit textrm texttt mathrm mathbf mathit mathsf mathcal mathscr boldsymbol operatorname boxed fbox
    overline underline widehat hat bar vec tilde overrightarrow underbrace overbrace mbox emph mathop cancel
""")
# What changes only how the rest is set.
SILENT_COMMANDS = _parse_words("""
    left right middle big Big bigg Bigg bigl bigr displaystyle textstyle scriptstyle limits nolimits hline rm bf it
    phantom hfill notag nonumber
""")
SPACES = frozenset(["quad", "qquad", " ", ",", ";", ":", ">", "~"])
ESCAPED = {"{": "{", "}": "}", "%": "%", "$": "$", "&": "&", "#": "#", "_": "_", "|": "‖"}


# LaTeX as plain characters: `x^2 + \frac{1}{2}` reads x² + 1/2. Pure. It reads what school and competition maths is


_TOKEN = re.compile(r"\\([A-Za-z]+)\*?\s*|\\(.)|(\s+)|([0-9]+(?:[.,][0-9]+)*)|(.)", re.DOTALL)
_DEEPEST = 12  # braces in braces: more is no title any more
_BINARY = re.compile(r"(?<=[^\s(\[{⟨=<>≤≥≠,;|+−×·/]) ?([+−]) ?(?=[^\s,;)])")
_RELATION = re.compile(r"\s*([=<>])\s*")
_COMMA = re.compile(r"\s*,(?=[^\s\d])")
_NAME = re.compile(r"[a-z]{2,}\Z")
_ENVIRONMENTS = {"pmatrix": "()", "bmatrix": "[]", "vmatrix": "||", "Bmatrix": "{}"}


def latex_to_text(tex: str) -> str:
    read = _LatexReader(tex).until("")
    read = _RELATION.sub(r" \1 ", _COMMA.sub(", ", read))
    read = _BINARY.sub(r" \1 ", read)
    return re.sub(r" +([,.;:)\]⌋⌉⟩])", r"\1", re.sub(r"\s+", " ", read)).replace("( ", "(").strip()


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
        read = self._argument().strip()
        small = SUPERSCRIPT if mark == "^" else SUBSCRIPT
        is_small = all(each in small for each in read)
        raised = "".join(small[each] for each in read) if is_small else f"{mark}{_bracket_if_compound(read)}"
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
        if name in TRANSPARENT_COMMANDS:
            return self._words() if name.startswith(("text", "mbox", "operatorname")) else self._argument()
        if name in SILENT_COMMANDS or name in SPACES:
            return " " if name in SPACES else ""
        if name in RELATIONS:
            return f" {RELATIONS[name]} "
        return self._built(name) or SYMBOLS.get(name) or name

    def _built(self, name: str) -> str:
        if name in ("frac", "dfrac", "tfrac", "cfrac"):
            read = f"{_bracket_if_compound(self._argument())}/{_bracket_if_compound(self._argument())}"
            return f"({read})" if self._is_followed_closely() else read
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


def _bracket_if_compound(read: str) -> str:
    """In brackets where it would be taken for less than it is."""
    read = read.strip()
    is_one = read.isalnum() or len(read) < 2 or not re.search(r"[\s+−·×/=,<>≤≥]|.[^\W\d_]", read)
    return read if is_one else f"({read})"
