"""Fill the database of `bench.browser` and print a rater's session: `python -m bench.browser_fill TRACES`."""

import datetime as dt
import json
import os
import sys

STEPS = [
    r"Write $S = \sum_{k=1}^{n} k^2$ for the sum that is asked for, with $n = {n}$.",
    r"We know that \(\sum_{k=1}^{n} k^2 = \frac{n(n+1)(2n+1)}{6}\).",
    r"Put in $n = {n}$: $S = \frac{{n} \cdot ({n} + 1) \cdot (2 \cdot {n} + 1)}{6}$.",
    r"Of $n$ and $n + 1$ one is even, so $2 \mid n(n+1)$.",
    r"If $n \equiv 1 \pmod 3$ then $2n + 1 \equiv 0 \pmod 3$; otherwise $3 \mid n(n+1)$.",
    r"Therefore $$\frac{n(n+1)(2n+1)}{6} \in \mathbb{Z}.$$",
    r"Let $a = \sqrt{S + 1}$ and look at $a^2 - 1 = S$.",
    r"Both sides grow like $\frac{n^3}{3}$, since $\lim_{n \to \infty} \frac{S}{n^3} = \frac13$.",
    r"So $S$ lies between $\int_0^n x^2\,dx$ and $\int_0^{n+1} x^2\,dx$.",
    r"That is $\frac{n^3}{3} < S < \frac{(n+1)^3}{3}$ for every $n \ge 1$.",
    r"For $n = {n}$ both bounds hold: $\left\lfloor \frac{n^3}{3} \right\rfloor \le S$.",
    r"The sum is \boxed{\frac{n(n+1)(2n+1)}{6}} at $n = {n}$.",
]


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    client = Client()
    client.force_login(_rater(int(sys.argv[1])))
    print(json.dumps({"session": client.cookies["sessionid"].value}))


def _rater(traces: int):  # type: ignore[no-untyped-def]  # models can be imported only after setup
    from people.models import Membership
    from tests import factories

    project = factories.make_project("bench", overlap=1, protocol="every_step")
    lane = factories.make_lane(project, "uniform")
    for number in range(traces):
        steps = [text.replace("{n}", str(number + 2)) for text in STEPS]
        factories.make_entry(lane, factories.make_trace(project, steps))
    user = factories.make_user("rater")
    factories.make_rater(project, user)
    Membership.objects.create(project=project, user=user, role="annotator", joined_at=dt.datetime.now(dt.UTC))
    _make_long_trace(user)
    return user


def _make_long_trace(user) -> None:  # type: ignore[no-untyped-def]  # models can be imported only after setup
    """Make an agent's trace of 500 entries: actions and outputs, one of each with 200 kB."""
    from labeling.models import Step
    from people.models import Membership
    from tests import factories

    project = factories.make_project("bench-long", overlap=1, protocol="every_step")
    texts = []
    for number in range(0, 500, 2):
        texts += [f"I look at record {number}. " * 12, "\n".join(f"{number}: record {n}" for n in range(60))]
    texts[10] = "I wrote this down. " * 10_500
    texts[11] = "\n".join(f"record {n} of a long output" for n in range(7_000))
    trace = factories.make_trace(project, texts)
    odd = [step.pk for step in Step.objects.filter(trace=trace) if step.position % 2]
    Step.objects.filter(trace=trace).update(kind="action")
    Step.objects.filter(pk__in=odd).update(kind="observation", is_rateable=False)
    factories.make_entry(factories.make_lane(project, "uniform"), trace)
    factories.make_rater(project, user)
    Membership.objects.create(project=project, user=user, role="annotator", joined_at=dt.datetime.now(dt.UTC))


if __name__ == "__main__":
    main()
