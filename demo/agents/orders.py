"""An assistant in a shop's back office adds up what a customer spent. Pure."""

import json
from decimal import Decimal

from demo.agents.script import CONSTRAINT, MISREADING, WRONG_CALL, AgentScript
from demo.generated_content import GeneratedTrace

NAMES = ("Greta", "Hana", "Ines", "Jonas", "Farid", "Dunya")
MONTHS = (("February", "2026-02"), ("March", "2026-03"), ("April", "2026-04"))
SLIPS = ("month", "returned order", "misread sum")
RULES = (
    "You help in a shop's back office. Tools: list_orders(customer, month) lists a customer's orders of one month; "
    "calculate(expression) does arithmetic. Sums are always done with calculate. Orders that were sent back do not "
    "count "
    "as spent. Answer in one sentence with the amount in euros."
)

ShopOrder = dict[str, str]


def run_scenario(script: AgentScript, ref: str) -> GeneratedTrace:
    customer, (month, key) = script.numbers.choice(NAMES), script.numbers.choice(MONTHS)
    orders = _orders(script, customer)
    asked = f"How much did {customer} spend with us in {month}? Leave out what was sent back."
    script.system(RULES)
    script.user(asked)
    script.think(
        f"I need the orders of {customer} in {month}, with their state, so that I can leave out what came back."
    )
    used = script.value("month", key, _other_key(key), WRONG_CALL)
    script.call("list_orders", customer=customer, month=used)
    listed = [order for order in orders if order["date"].startswith(used)]
    script.observe(json.dumps(listed, indent=1), "list_orders")
    kept = [order for order in listed if order["state"] == "paid"]
    counted = script.value("returned order", kept, listed, CONSTRAINT)
    script.think(_format_sum(listed, counted))
    amounts = [order["amount"] for order in counted]
    script.call("calculate", expression=" + ".join(amounts))
    total = sum(map(Decimal, amounts), Decimal(0))
    script.observe(str(total), "calculate")
    said = script.value("misread sum", total, total + Decimal("0.90"), MISREADING)
    script.answer(f"In {month} {customer} spent {said} euros.")
    right = sum((Decimal(each["amount"]) for each in orders if _counts_toward(each, key)), Decimal(0))
    return script.told(problem=asked, domain="shop", reference=right, answer=said, ref=ref)


def _counts_toward(order: ShopOrder, month: str) -> bool:
    return order["date"].startswith(month) and order["state"] == "paid"


def _other_key(key: str) -> str:
    return next(other for _, other in MONTHS if other != key)


def _orders(script: AgentScript, customer: str) -> list[ShopOrder]:
    """In each month three or four orders that stand and one that came back."""
    made = []
    for _, month in MONTHS:
        count = script.numbers.randint(3, 4)
        days = sorted(script.numbers.sample(range(1, 29), count + 1))
        returned = script.numbers.randrange(count + 1)
        for place, day in enumerate(days):
            made.append(
                {
                    "order": f"A-{script.numbers.randint(1000, 9999)}",
                    "customer": customer,
                    "date": f"{month}-{day:02d}",
                    "amount": f"{script.numbers.randint(500, 9000) / 100:.2f}",
                    "state": "returned" if place == returned else "paid",
                }
            )
    return made


def _format_sum(listed: list[ShopOrder], counted: list[ShopOrder]) -> str:
    left_out = [order["order"] for order in listed if order not in counted]
    amounts = ", ".join(order["amount"] for order in counted)
    if not left_out:
        return f"There are {len(listed)} orders. I add all of them up: {amounts}."
    return f"{left_out[0]} was sent back, so it stays out. The {len(counted)} others are {amounts}."
