"""Equations and polynomials. Pure."""

from fractions import Fraction

from demo.math_problems.derivation import (
    ARITHMETIC,
    CASE,
    FORMULA,
    MISREAD,
    SIGN,
    Derivation,
    ProblemFamily,
    format_added,
    format_factor,
    format_number,
)


def sum_of_squares(path: Derivation) -> None:
    total, product = path.numbers.randint(5, 14), path.numbers.choice([-12, -9, -7, -5, 3, 4, 6])
    path.ask(
        f"The equation $x^2 - {total}x{format_added(product)} = 0$ has the solutions $r$ and $s$. Find $r^2 + s^2$.",
        total * total - 2 * product,
        vieta=(total, product),
    )
    path.aside("I could solve for $r$ and $s$ directly, but the roots may not be simple numbers.")
    seen = path.value("sign of the sum", total, -total, SIGN)
    path.say(f"By Vieta the solutions have the sum $r + s = {seen}$.")
    seen_product = path.value("sign of the product", product, -product, SIGN)
    path.say(f"Their product is the constant term, $rs = {seen_product}$.")
    sign = path.value("identity", -2, 2, FORMULA)
    path.say(
        f"Since $(r + s)^2 = r^2 + 2rs + s^2$, I can write $r^2 + s^2 = (r + s)^2 {'-' if sign < 0 else '+'} 2rs$."
    )
    square = seen * seen
    square = path.value("square", square, square + 10, ARITHMETIC)
    path.say(f"The square of the sum is ${format_factor(seen)}^2 = {square}$.")
    double = sign * seen_product
    path.say(f"The other term is ${sign} \\cdot {format_factor(seen_product)} = {double}$.")
    result = square + double
    path.say(f"Together: ${square}{format_added(double)} = {result}$.")
    path.conclude("So $r^2 + s^2$ equals", result)


def two_equations(path: Derivation) -> None:
    x, y = path.numbers.randint(2, 9), path.numbers.choice([-4, -3, -2, 2, 3, 5, 6])
    a, b, c, d = path.numbers.choice([(2, 3, 5, -2), (3, 4, 2, -5), (4, 3, 3, -2), (3, 5, 4, -3), (2, 5, 7, -3)])
    e, f = a * x + b * y, c * x + d * y
    path.ask(f"Solve $${a}x + {b}y = {e}$$ $${c}x - {-d}y = {f}$$ and give $x + y$.", x + y, system=(a, b, e, c, d, f))
    path.say(f"To eliminate $y$, I multiply the first equation by ${-d}$ and the second by ${b}$.")
    first = -d * e
    first = path.value("first product", first, first + 3, ARITHMETIC)
    path.say(
        f"The first becomes ${-d * a}x + {-d * b}y = {-d} \\cdot {format_factor(e)}$, that is ${-d * a}x + {-d * b}y = "
        f"{first}$."
    )
    second = b * f
    second = path.value("right side not multiplied", second, f, CASE)
    path.say(f"The second becomes ${b * c}x - {-d * b}y = {second}$.")
    factor, right = -d * a + b * c, first + second
    factor = path.value("difference for sum", factor, abs(b * c + d * a), SIGN)
    path.say(f"Adding the two, $y$ drops out: ${factor}x = {right}$.")
    path.aside("Substituting instead of adding would give the same value.")
    got_x = Fraction(right, factor)
    path.say(f"Dividing by ${factor}$ gives $x = {format_number(got_x)}$.")
    path.say(f"I put this into the first equation: ${b}y = {e} - {a}x = {format_number(e - a * got_x)}$.")
    got_y = (e - a * got_x) / b
    path.say(f"Therefore $y = {format_number(got_y)}$.")
    path.conclude(f"The sum is $x + y = {format_number(got_x)} + {format_bracket(got_y)}$, which is", got_x + got_y)


def absolute_value(path: Derivation) -> None:
    a, b, c = path.numbers.choice([2, 3, 4]), path.numbers.randint(2, 9), path.numbers.randint(11, 30)
    path.ask(f"Find the sum of all solutions of $|{a}x - {b}| = {c}$.", Fraction(2 * b, a), absolute=(a, b, c))
    path.aside(f"The right side ${c}$ is positive, so solutions exist.")
    path.say(f"The expression inside the absolute value is either ${c}$ or $-{c}$.")
    path.say(f"First case: ${a}x - {b} = {c}$.")
    moved = path.value("first move", c + b, c - b, SIGN)
    path.say(f"Next: ${a}x = {moved}$.")
    one = Fraction(moved, a)
    path.say(f"So the first solution is $x = {format_number(one)}$.")
    if path.makes("second case", CASE):
        path.say("That is the only solution, because an absolute value is never negative.")
        path.conclude("The sum of all solutions is", one)
        return
    path.say(f"Second case: ${a}x - {b} = -{c}$.")
    low = path.value("second move", b - c, -b - c, SIGN)
    path.say(f"Next: ${a}x = {low}$, and $x = {format_number(Fraction(low, a))}$.")
    other = Fraction(low, a)
    path.say(
        f"The two solutions add up to ${format_number(one)} + {format_bracket(other)} = {format_number(one + other)}$."
    )
    path.conclude("The sum of all solutions is", one + other)


def format_bracket(value: Fraction) -> str:
    return format_number(value) if value >= 0 else f"\\left({format_number(value)}\\right)"


def radical(path: Derivation) -> None:
    good, small = path.numbers.randint(6, 12), path.numbers.randint(2, 5)
    shift = good - small  # sqrt(good + more) = good - shift = small
    more = small * small - good
    other = 2 * shift + 1 - good  # the second solution of the squared equation
    path.ask(
        f"Solve $\\sqrt{{x{format_added(more)}}} = x - {shift}$ over the real numbers.", good, radical=(more, shift)
    )
    path.say(f"Squaring both sides: $x{format_added(more)} = (x - {shift})^2$.")
    middle = path.value("square of a difference", 2 * shift, shift, FORMULA)
    path.say(f"The right side expands to $x^2 - {middle}x + {shift * shift}$.")
    linear, constant = -(middle + 1), shift * shift - more
    constant = path.value("constant moved", constant, shift * shift + more, SIGN)
    path.say(f"Bringing everything to one side: $x^2 - {-linear}x{format_added(constant)} = 0$.")
    discriminant = linear * linear - 4 * constant
    path.say(f"The discriminant is ${-linear}^2 - 4 \\cdot {format_factor(constant)} = {discriminant}$.")
    if path.has_slipped:
        large = f"\\frac{{{-linear} + \\sqrt{{{discriminant}}}}}{{2}}"
        path.say(f"Only the larger solution can be valid: $x = {large}$." if discriminant >= 0 else "That is negative.")
        path.conclude("The solution is", large) if discriminant >= 0 else path.conclude(
            "So the number of solutions is", 0
        )
        return
    path.say(f"Its square root is ${abs(good - other)}$, so the candidates are $x = {good}$ and $x = {other}$.")
    path.aside("Squaring can introduce solutions that the original equation does not have.")
    if path.makes("no check", CASE):
        path.say(f"Both come from the equation, so both $x = {good}$ and $x = {other}$ are solutions.")
        path.conclude("The solutions are", f"{other}, {good}")
        return
    path.say(f"Check $x = {good}$: $\\sqrt{{{good + more}}} = {small}$ and ${good} - {shift} = {small}$, so it holds.")
    path.say(
        f"Check $x = {other}$: the right side is ${other} - {shift} = {other - shift}$, but a root is never negative."
    )
    path.conclude("The only solution is", good)


def least_value(path: Derivation) -> None:
    half, constant = path.numbers.randint(2, 8), path.numbers.choice([-9, -7, -4, 3, 5, 11, 18, 26])
    factor = path.numbers.choice([1, 2, 3])
    linear, end = 2 * half * factor, constant
    leading = "" if factor == 1 else str(factor)
    path.ask(
        f"What is the least value of ${leading}x^2 - {linear}x{format_added(end)}$ for real $x$?",
        end - factor * half * half,
        parabola=(factor, -linear, end),
    )
    path.say(f"The leading coefficient ${factor}$ is positive, so the parabola opens upward and has a least value.")
    if factor > 1:
        path.say(f"I factor ${factor}$ out of the first two terms: ${factor}(x^2 - {2 * half}x){format_added(end)}$.")
    path.aside("The least value is at the vertex.")
    added_square = path.value("half of the coefficient", half, 2 * half, FORMULA)
    path.say(f"To complete the square I use half of ${2 * half}$, squared: ${added_square}^2 = {added_square**2}$.")
    outside = path.value("factor in front", factor * added_square**2, added_square**2, CASE)
    sign = path.value("sign of the correction", -1, 1, SIGN)
    path.say(f"This gives ${leading}(x - {added_square})^2{format_added(sign * outside)}{format_added(end)}$.")
    least = end + sign * outside
    path.say(f"The constants together are ${sign * outside}{format_added(end)} = {least}$.")
    path.say(f"A square is at least $0$, and it is $0$ for $x = {added_square}$.")
    path.conclude("So the least value is", least)


def polynomial_value(path: Derivation) -> None:
    at = path.numbers.choice([-3, -2, 3, 4])
    coefficients = [
        path.numbers.choice([1, 2, 3]),
        *(path.numbers.choice([-6, -5, -4, -1, 2, 3, 5, 7]) for _ in range(4)),
    ]
    degree = len(coefficients) - 1
    spelled = f"{'' if coefficients[0] == 1 else coefficients[0]}x^{degree}"
    for power, coefficient in zip(range(degree - 1, -1, -1), coefficients[1:], strict=True):
        size = "" if abs(coefficient) == 1 and power else abs(coefficient)
        variable = {0: "", 1: "x"}.get(power, f"x^{power}")
        spelled += f" {'+' if coefficient > 0 else '-'} {size}{variable}"
    value = 0
    for coefficient in coefficients:
        value = value * at + coefficient
    path.ask(
        f"Find the remainder when $p(x) = {spelled}$ is divided by $x{format_added(-at)}$.",
        value,
        horner=(coefficients, at),
    )
    at_used = path.value("sign of the zero", at, -at, SIGN)
    path.say(f"By the remainder theorem the remainder is $p({at_used})$.")
    path.say(f"I use Horner's scheme. It starts with the leading coefficient ${coefficients[0]}$.")
    running = coefficients[0]
    path.aside("Long division would give the same number with more writing.")
    for number, coefficient in enumerate(coefficients[1:], start=1):
        following = running * at_used + coefficient
        kind, wrong = (SIGN, running * at_used - coefficient) if number % 2 else (ARITHMETIC, following + 2)
        following = path.value(f"row {number}", following, wrong, kind)
        path.say(
            f"Next: ${format_factor(running)} \\cdot {format_factor(at_used)}{format_added(coefficient)} "
            f"= {following}$."
        )
        running = following
    path.conclude("The remainder is", running)


def mixed_up_number(path: Derivation) -> None:
    tens, ones = path.numbers.choice([(2, 7), (3, 8), (1, 5), (4, 9), (2, 6), (3, 7)])
    number, swapped, total = 10 * tens + ones, 10 * ones + tens, tens + ones
    gain = swapped - number
    path.ask(
        f"The digits of a two-digit number add up to ${total}$. When its digits are swapped, the number grows by "
        f"${gain}$. What is the number?",
        number,
        digits=(total, gain),
    )
    path.say("Let the tens digit be $a$ and the ones digit $b$. The number is $10a + b$.")
    path.say(f"The first condition says $a + b = {total}$.")
    wanted = path.value("direction of the difference", gain, -gain, MISREAD)
    path.say(f"The second condition says $(10b + a) - (10a + b) = {wanted}$.")
    path.aside("Both digits are between $0$ and $9$.")
    difference = wanted // 9
    difference = path.value("division by nine", difference, difference + 2, ARITHMETIC)
    path.say(f"The left side is $9b - 9a$, so $b - a = {difference}$.")
    twice = total + difference
    path.say(f"Adding this to the first condition gives $2b = {total}{format_added(difference)} = {twice}$.")
    b = Fraction(twice, 2)
    a = total - b
    path.say(f"So $b = {format_number(b)}$ and $a = {total} - {format_number(b)} = {format_number(a)}$.")
    path.conclude("The number is", 10 * a + b)


FAMILIES = tuple(
    ProblemFamily(derive.__name__, "algebra", derive)
    for derive in (
        sum_of_squares,
        two_equations,
        absolute_value,
        radical,
        least_value,
        polynomial_value,
        mixed_up_number,
    )
)
