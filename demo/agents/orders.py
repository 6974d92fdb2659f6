"""A back-office assistant that adds up a customer's spending. Pure."""

import json
from decimal import Decimal

from demo.agents.script import CONSTRAINT, MISREADING, WRONG_CALL, AgentScript
from demo.generated_content import GeneratedTrace

NAMES = ("Greta", "Hana", "Ines", "Jonas", "Farid", "Dunya")
MONTHS = (("February", "2026-02"), ("March", "2026-03"), ("April", "2026-04"))
SLIPS = ("month", "returned order", "misread sum")
RULES = (
    "You help in a shop's back office. Tools: list_orders(customer, month) lists a customer's orders in one month; "
    "calculate(expression) does arithmetic. Always add with calculate. Returned orders do not count as spending. "
    "Answer in one sentence with the amount in euros."
)

ShopOrder = dict[str, str]


def run_scenario(script: AgentScript, ref: str) -> GeneratedTrace:
    customer, (month, key) = script.numbers.choice(NAMES), script.numbers.choice(MONTHS)
    orders = _orders(script, customer)
    task = f"How much did {customer} spend with us in {month}? Leave out returned orders."
    script.system(RULES)
    script.user(task)
    script.think(
        f"I need the orders of {customer} in {month} with their state, so that I can leave out returned orders."
    )
    used = script.value("month", key, _other_key(key), WRONG_CALL)
    script.call("list_orders", customer=customer, month=used)
    listed = [order for order in orders if order["date"].startswith(used)]
    script.observe(json.dumps(listed, indent=1), "list_orders")
    paid = [order for order in listed if order["state"] == "paid"]
    counted = script.value("returned order", paid, listed, CONSTRAINT)
    script.think(_format_sum(listed, counted))
    amounts = [order["amount"] for order in counted]
    script.call("calculate", expression=" + ".join(amounts))
    total = sum(map(Decimal, amounts), Decimal(0))
    script.observe(str(total), "calculate")
    reported = script.value("misread sum", total, total + Decimal("0.90"), MISREADING)
    script.answer(f"In {month} {customer} spent {reported} euros.")
    right = sum((Decimal(each["amount"]) for each in orders if _counts_toward(each, key)), Decimal(0))
    return script.build_trace(problem=task, domain="shop", reference=right, answer=reported, ref=ref)


def _counts_toward(order: ShopOrder, month: str) -> bool:
    return order["date"].startswith(month) and order["state"] == "paid"


def _other_key(key: str) -> str:
    return next(other for _, other in MONTHS if other != key)


def _orders(script: AgentScript, customer: str) -> list[ShopOrder]:
    """Make three or four paid orders and a returned one in each month."""
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
    return f"{left_out[0]} was returned, so I leave it out. The other {len(counted)} amounts are {amounts}."
