"""What LaTeX commands look like as plain characters."""


def _table(text: str) -> dict[str, str]:
    """Commands, each before what it looks like."""
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SYMBOLS = _table("""
    alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ iota ι kappa κ lambda λ mu μ nu ν xi ξ
    pi π rho ρ sigma σ tau τ phi φ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ
    Phi Φ Psi Ψ Omega Ω ell ℓ hbar ħ
    cdot · times × div ÷ pm ± mp ∓ circ ∘ degree ° prime ′ infty ∞ sum ∑ prod ∏ int ∫ oint ∮ partial ∂ nabla ∇
    angle ∠ triangle △ square □ ldots … dots … cdots … vdots … ddots … dotsc … dotsb … neg ¬ forall ∀ exists ∃
    emptyset ∅ varnothing ∅ cup ∪ cap ∩ setminus ∖ backslash ∖ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ langle ⟨ rangle ⟩
    mid | vert | lvert | rvert | Vert ‖ star ⋆ ast ∗
""")
# These stand between two sides, with a space on both.
RELATIONS = _table("""
    le ≤ leq ≤ leqslant ≤ ge ≥ geq ≥ geqslant ≥ ne ≠ neq ≠ lt < gt > ll ≪ gg ≫ approx ≈ equiv ≡ sim ∼ cong ≅ propto ∝
    to → rightarrow → longrightarrow → leftarrow ← gets ← mapsto ↦ Rightarrow ⇒ implies ⇒ iff ⇔ Leftrightarrow ⇔
    in ∈ notin ∉ subset ⊂ subseteq ⊆ supset ⊃ parallel ∥ perp ⊥ wedge ∧ land ∧ vee ∨ lor ∨ bmod mod
""")
SUPERSCRIPT = dict(zip("0123456789+−=()nixyabcdekmt′∘°", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣʸᵃᵇᶜᵈᵉᵏᵐᵗ′°°", strict=True))
SUBSCRIPT = dict(zip("0123456789+−=()aeijknx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₖₙₓ", strict=True))
BLACKBOARD = dict(zip("RNZQCPF", "ℝℕℤℚℂℙ𝔽", strict=True))
ROOTS = {"": "√", "3": "∛", "4": "∜"}
# What they are told stands as it is.
PLAIN = _words("""
    text textbf textit textrm texttt mathrm mathbf mathit mathsf mathcal mathscr boldsymbol operatorname boxed fbox
    overline underline widehat hat bar vec tilde overrightarrow underbrace overbrace mbox emph mathop cancel
""")
# What changes only how the rest is set.
SILENT = _words("""
    left right middle big Big bigg Bigg bigl bigr displaystyle textstyle scriptstyle limits nolimits hline rm bf it
    phantom hfill notag nonumber
""")
SPACES = frozenset(["quad", "qquad", " ", ",", ";", ":", ">", "~"])
ESCAPED = {"{": "{", "}": "}", "%": "%", "$": "$", "&": "&", "#": "#", "_": "_", "|": "‖"}
