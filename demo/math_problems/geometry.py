"""Lengths, areas and angles. Pure."""

from fractions import Fraction

from demo.math_problems.derivation import (
    ARITHMETIC,
    CASE,
    FORMULA,
    MISREAD,
    SIGN,
    Derivation,
    ProblemFamily,
    format_number,
    format_sum,
)

HERON = ((13, 14, 15, 84), (5, 12, 13, 30), (9, 10, 17, 36), (10, 13, 13, 60), (7, 15, 20, 42), (11, 13, 20, 66))
BOXES = ((2, 3, 6, 7), (1, 4, 8, 9), (4, 4, 7, 9), (2, 6, 9, 11), (6, 6, 7, 11), (3, 4, 12, 13), (2, 10, 11, 15))


def altitude(path: Derivation) -> None:
    *sides, area = path.numbers.choice(HERON)
    scale = path.numbers.choice([1, 2, 3])
    a, b, c = (side * scale for side in sides)
    area *= scale * scale
    path.ask(
        f"A triangle has sides ${a}$, ${b}$ and ${c}$. What is the length of its altitude to the side of length ${c}$?",
        Fraction(2 * area, c),
        heron=(a, b, c),
    )
    half = (a + b + c) // 2
    path.say(f"I find the area by Heron's formula. The perimeter is ${format_sum((a, b, c))} = {a + b + c}$.")
    half = path.value("half perimeter", half, a + b + c, FORMULA)
    path.say(f"So the formula works with $s = {half}$.")
    parts = [half - side for side in (a, b, c)]
    parts = path.value("difference", parts, [parts[0] + 1, *parts[1:]], ARITHMETIC)
    path.say(f"The differences are $s - a = {parts[0]}$, $s - b = {parts[1]}$ and $s - c = {parts[2]}$.")
    product = half * parts[0] * parts[1] * parts[2]
    path.say(
        f"The product under the root is ${half} \\cdot {parts[0]} \\cdot {parts[1]} \\cdot {parts[2]} = {product}$."
    )
    path.aside("The area cannot be larger than half the product of any two sides.")
    root = round(product**0.5)
    exact = root * root == product
    path.say(f"Its root is ${root}$, so the area is ${root}$." if exact else f"So the area is about ${root}$.")
    double = path.value("factor two", 2 * root, root, FORMULA)
    path.say(f"The altitude times the side is {'twice ' if double != root else ''}the area: $h \\cdot {c} = {double}$.")
    height = Fraction(double, c)
    path.conclude("Dividing by the side, the altitude is", height)


def shoelace(path: Derivation) -> None:
    x, y = path.numbers.randint(5, 9), path.numbers.randint(4, 9)
    points = [(0, 0), (x, path.numbers.randint(1, 3)), (x + 2, y), (path.numbers.randint(1, 3), y + 1)]
    terms = [points[i][0] * points[(i + 1) % 4][1] - points[(i + 1) % 4][0] * points[i][1] for i in range(len(points))]
    spelled = ", ".join(f"$({px}, {py})$" for px, py in points)
    path.ask(
        f"Find the area of the quadrilateral with the vertices {spelled}, in this order.",
        Fraction(sum(terms), 2),
        points=points,
    )
    path.say("I use the shoelace formula and go around the vertices in the order given.")
    found = []
    for number, term in enumerate(terms):
        (px, py), (qx, qy) = points[number], points[(number + 1) % 4]
        wrong = px * qy + qx * py
        got = path.value(f"term {number}", term, wrong, SIGN)
        found.append(got)
        path.say(f"From $({px}, {py})$ to $({qx}, {qy})$: ${px} \\cdot {qy} - {qx} \\cdot {py} = {got}$.")
    path.aside("If the points were listed in the opposite order, every term would change its sign.")
    total = sum(found)
    total = path.value("sum", total, total - 2, ARITHMETIC)
    path.say(f"The terms add up to ${format_sum(found)} = {total}$.")
    halved = path.value("half", Fraction(total, 2), Fraction(total), FORMULA)
    path.say(f"The area is {'half of this sum' if halved != total else 'this sum'}, ${format_number(halved)}$.")
    path.conclude("So the area is", halved)


def sector(path: Derivation) -> None:
    radius, angle = path.numbers.choice([6, 9, 10, 12, 15, 18]), path.numbers.choice([40, 60, 72, 80, 100, 120, 150])
    share = Fraction(angle, 360)
    path.ask(
        f"A circle has the diameter ${2 * radius}$. What is the area of a sector with a central angle of "
        f"${angle}^\\circ$?",
        format_pi_multiple(share * radius * radius),
        sector=(radius, angle),
    )
    used = path.value("diameter for radius", radius, 2 * radius, MISREAD)
    path.say(f"The radius of the circle is ${used}$.")
    path.aside("The answer is part of the area of a circle, so it contains $\\pi$ once.")
    if path.makes("circumference for area", FORMULA):
        whole = 2 * used
        path.say(f"The whole circle has the area $2\\pi r = {whole}\\pi$.")
    else:
        whole = used * used
        path.say(f"The whole circle has the area $\\pi r^2 = {whole}\\pi$.")
    part = path.value("share", share, share * 2, ARITHMETIC)
    path.say(f"The sector takes up $\\frac{{{angle}}}{{360}} = {format_number(part)}$ of the circle.")
    path.say(f"So its area is ${format_number(part)} \\cdot {whole}\\pi = {format_pi_multiple(part * whole)}$.")
    path.conclude("The area of the sector is", format_pi_multiple(part * whole))


def format_pi_multiple(value: Fraction) -> str:
    return f"{format_number(value)}\\pi"


def diagonal(path: Derivation) -> None:
    a, b, c, length = _box(path)
    path.ask(f"A box measures ${a}$ by ${b}$ by ${c}$. How long is its space diagonal?", length, box=(a, b, c))
    path.aside("The diagonal is longer than each of the three edges.")
    path.say(f"The diagonal of the base is the longest side of a right triangle with the legs ${a}$ and ${b}$.")
    base = a * a + b * b
    base = path.value("square of the base", base, (a + b) ** 2, FORMULA)
    path.say(f"So its square is $d^2 = {base}$.")
    path.say(f"The space diagonal is the longest side of a right triangle with the legs $d$ and ${c}$.")
    height = c * c
    height = path.value("square of the height", height, 2 * c, ARITHMETIC)
    path.say(f"The square of the height is ${c}^2 = {height}$.")
    total = base + height
    path.say(f"The square of the diagonal is ${base} + {height} = {total}$.")
    root = round(total**0.5)
    exact = root * root == total
    path.conclude("The diagonal has the length", root if exact else f"\\sqrt{{{total}}}")


def _box(path: Derivation) -> tuple[int, int, int, int]:
    scale = path.numbers.choice([1, 2, 3])
    a, b, c, length = path.numbers.choice(BOXES)
    return a * scale, b * scale, c * scale, length * scale


def shadows(path: Derivation) -> None:
    pole, factor = path.numbers.choice([4, 5, 6]), path.numbers.choice([3, 4, 7])
    shadow = path.numbers.choice([3, 7, 9])
    tower_shadow, height = shadow * factor, pole * factor
    path.ask(
        f"A pole of ${pole}$ m stands upright and casts a shadow of ${shadow}$ m. At the same time a tower casts a "
        f"shadow of ${tower_shadow}$ m, measured from the center of its base. How high is the tower, in meters?",
        height,
        shadows=(pole, shadow, tower_shadow),
    )
    path.say("The sun's rays are parallel, so the two right triangles are similar.")
    path.aside("Both heights are perpendicular to the ground.")
    if path.makes("ratio upside down", FORMULA):
        ratio = Fraction(shadow, pole)
        path.say(f"Therefore $\\frac{{h}}{{{tower_shadow}}} = \\frac{{{shadow}}}{{{pole}}}$.")
    else:
        ratio = Fraction(pole, shadow)
        path.say(f"Therefore $\\frac{{h}}{{{tower_shadow}}} = \\frac{{{pole}}}{{{shadow}}}$.")
    path.say(f"Multiplying by ${tower_shadow}$: $h = {format_number(ratio)} \\cdot {tower_shadow}$.")
    result = ratio * tower_shadow
    result = path.value("product", result, result + pole, ARITHMETIC)
    path.say(f"That gives $h = {format_number(result)}$.")
    path.conclude("The height of the tower in meters is", result)


def polygon_angle(path: Derivation) -> None:
    known = [path.numbers.randint(95, 140) for _ in range(3)]
    path.numbers.shuffle(known)
    last = 540 - sum(known) - 90
    path.ask(
        f"A pentagon has one right angle and angles of ${known[0]}^\\circ$, ${known[1]}^\\circ$ and "
        f"${known[2]}^\\circ$. What is its fifth angle, in degrees?",
        last,
        angles=known,
    )
    path.say("Drawing the diagonals from one vertex cuts a pentagon into triangles.")
    triangles = path.value("number of triangles", 3, 4, CASE)
    path.say(f"There are ${triangles}$ triangles.")
    total = triangles * 180
    path.say(
        f"Each has $180^\\circ$, so the angles of the pentagon add up to ${triangles} \\cdot 180 = {total}$ degrees."
    )
    used = path.value("right angle left out", [*known, 90], known, MISREAD)
    path.say(f"The given angles add up to ${format_sum(used)} = {sum(used)}$ degrees.")
    path.aside("The order of the angles does not matter.")
    rest = total - sum(used)
    rest = path.value("difference", rest, rest + 10, ARITHMETIC)
    path.say(f"The fifth angle is the rest, ${total} - {sum(used)} = {rest}$ degrees.")
    path.conclude("The fifth angle in degrees is", rest)


FAMILIES = tuple(
    ProblemFamily(derive.__name__, "geometry", derive)
    for derive in (altitude, shoelace, sector, diagonal, shadows, polygon_angle)
)
