"""Divisors, remainders, factorials. Pure."""

import math

from demo.math_problems.derivation import (
    ARITHMETIC,
    CASE,
    FORMULA,
    MISREAD,
    Derivation,
    ProblemFamily,
    format_product,
    format_sum,
)


def divisors(path: Derivation) -> None:
    exponents = {prime: path.numbers.randint(1, top) for prime, top in ((2, 5), (3, 3), (5, 2), (7, 1))}
    number = math.prod(prime**exponent for prime, exponent in exponents.items())
    path.ask(
        f"How many positive divisors does ${number}$ have?",
        math.prod(exponent + 1 for exponent in exponents.values()),
        number=number,
    )
    rest, found = number, []
    for prime, exponent in exponents.items():
        power = path.value(f"power of {prime}", exponent, exponent + 1, ARITHMETIC)
        rest //= prime**exponent
        found.append((prime, power))
        path.say(
            path.one_of(f"The factor ${prime}$ comes out ", f"I can divide by ${prime}$ ")
            + (f"${power}$ times" if power > 1 else "once")
            + f", which leaves ${rest}$."
        )
    product = format_product(f"{prime}^{power}" for prime, power in found)
    path.say(f"So the prime factorization is ${number} = {product}$.")
    path.aside("A prime factorization is unique, so there is no other way to write it.")
    factors = [power + 1 for _, power in found]
    if path.makes("no plus one", FORMULA):
        factors = [power for _, power in found]
        path.say("A divisor has one of the exponents for each prime, so I multiply the exponents.")
    else:
        path.say(
            "A divisor has each prime from $0$ times up to its exponent, so each prime gives exponent plus one choices."
        )
    total = math.prod(factors)
    total = path.value("product", total, total + factors[0], ARITHMETIC)
    path.say(f"Multiplying the choices: ${format_product(factors)} = {total}$.")
    path.conclude("The number of positive divisors is", total)


def common_divisor(path: Derivation) -> None:
    common = path.numbers.choice([6, 7, 9, 11, 12, 13, 14])
    first, second = common * path.numbers.randint(40, 90), common * path.numbers.randint(11, 37)
    path.ask(
        f"Find the greatest common divisor of ${first}$ and ${second}$.", math.gcd(first, second), pair=(first, second)
    )
    path.aside("Listing all divisors of both numbers would also work, but it is slow.")
    large, small, turn = first, second, 0
    while small:
        turn += 1
        quotient, remainder = divmod(large, small)
        wrong = remainder - 1 if remainder > 1 else remainder + 1
        remainder = path.value(f"remainder {turn}", remainder, wrong % small, ARITHMETIC)
        path.say(
            path.one_of(f"Dividing ${large}$ by ${small}$:", f"Next, ${large}$ by ${small}$:")
            + f" ${large} = {quotient} \\cdot {small} + {remainder}$."
        )
        large, small = small, remainder
    path.say(f"The last remainder that is not zero is ${large}$.")
    path.conclude("By Euclid's algorithm the greatest common divisor is", large)


def power_remainder(path: Derivation) -> None:
    base, exponent = path.numbers.randint(3, 12), path.numbers.choice([13, 19, 21, 22, 25, 26, 37, 41])
    modulus = path.numbers.choice([17, 19, 23, 29, 31])
    path.ask(
        f"What is the remainder when ${base}^{{{exponent}}}$ is divided by ${modulus}$?",
        pow(base, exponent, modulus),
        power=(base, exponent, modulus),
    )
    bits = [place for place in range(exponent.bit_length()) if exponent >> place & 1]
    spelled = format_sum(2**place for place in reversed(bits))
    path.say(f"I square repeatedly. In powers of two the exponent is ${exponent} = {spelled}$.")
    residue, residues = base % modulus, [base % modulus]
    path.aside(f"Only remainders modulo ${modulus}$ matter here, so the numbers stay small.")
    for place in range(1, exponent.bit_length()):
        square = residue * residue
        reduced = path.value(f"square {place}", square % modulus, (square + 2) % modulus, ARITHMETIC)
        path.say(f"${base}^{{{2**place}}} \\equiv {residue}^2 = {square} \\equiv {reduced} \\pmod{{{modulus}}}$.")
        residue = reduced
        residues.append(residue)
    needed = [residues[place] for place in bits]
    needed = path.value("factor left out", needed, needed[1:], CASE)
    product = math.prod(needed)
    result = product % modulus
    spelled = format_product(needed) + (f" = {product}" if len(needed) > 1 else "")
    path.say(f"Multiplying the powers that the exponent needs: ${spelled} \\equiv {result} \\pmod{{{modulus}}}$.")
    path.conclude("The remainder is", result)


def two_remainders(path: Derivation) -> None:
    small, large = path.numbers.choice([(5, 7), (7, 9), (8, 11), (9, 13), (7, 12)])
    one, two = path.numbers.randint(1, small - 1), path.numbers.randint(2, large - 1)
    least = next(number for number in range(small * large) if number % small == one and number % large == two)
    path.ask(
        f"Find the smallest non-negative integer that leaves remainder ${one}$ when divided by ${small}$ and remainder "
        f"${two}$ when divided by ${large}$.",
        least,
        remainders=(small, one, large, two),
    )
    start = path.value("remainder misread", two, two - 1, MISREAD)
    path.say(
        f"A number that leaves remainder ${start}$ when divided by ${large}$ has the form $x = {large}k + {start}$."
        if start
        else f"The number has the form $x = {large}k$."
    )
    step = large % small
    path.say(f"Modulo ${small}$ we have ${large} \\equiv {step}$ and ${start} \\equiv {start % small}$.")
    right = (one - start) % small
    needed = path.value("difference", right, (right + 1) % small, ARITHMETIC)
    path.say(f"So I need ${step}k \\equiv {one} - {start % small} \\equiv {needed} \\pmod{{{small}}}$.")
    path.aside(
        f"There is exactly one such $k$ between $0$ and ${small - 1}$, because ${small}$ and ${large}$ share no factor."
    )
    for k in range(small):
        if step * k % small == needed:
            break
        path.say(
            f"Trying $k = {k}$: ${step} \\cdot {k} = {step * k} \\equiv {step * k % small}$, which is not ${needed}$."
        )
    path.say(f"Trying $k = {k}$: ${step} \\cdot {k} = {step * k} \\equiv {step * k % small}$, as needed.")
    value = large * k + start
    value = path.value("last sum", value, value + large, ARITHMETIC)
    path.say(f"Then $x = {large} \\cdot {k} + {start} = {value}$.")
    path.conclude("The smallest such integer is", value)


def trailing_zeros(path: Derivation) -> None:
    number = path.numbers.choice([77, 90, 104, 118, 124, 130, 143, 160, 175, 212])
    total = sum(number // 5**power for power in (1, 2, 3))
    path.ask(f"How many zeros does ${number}!$ end with when it is written out?", total, factorial=number)
    path.say("Each zero at the end comes from a factor $10 = 2 \\cdot 5$.")
    path.say("There are more factors $2$ than factors $5$, so I only count the factors $5$.")
    counts = []
    powers = [power for power in (5, 25, 125) if power <= number]
    for power in powers:
        count = number // power
        count = path.value(f"multiples of {power}", count, count + 1, ARITHMETIC)
        counts.append(count)
        noun = "multiples" if count > 1 else "multiple"
        again = "" if power == 5 else ", each with one more factor $5$"
        path.say(
            f"There are $\\lfloor {number} / {power} \\rfloor = {count}$ {noun} of ${power}$ up to ${number}${again}."
        )
    counts = path.value("higher powers", counts, counts[:-1], CASE)
    path.say(
        f"Altogether that makes ${format_sum(counts)} = {sum(counts)}$ factors $5$."
        if len(counts) > 1
        else f"So ${number}!$ has ${counts[0]}$ factors $5$."
    )
    path.conclude("The number of zeros at the end is", sum(counts))


FAMILIES = tuple(
    ProblemFamily(derive.__name__, "number theory", derive)
    for derive in (divisors, common_divisor, power_remainder, two_remainders, trailing_zeros)
)
