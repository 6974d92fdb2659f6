"""Problems with a picture, whose solution can misread it. Pure, except for the pictures."""

from collections.abc import Sequence
from typing import NamedTuple

from demo.recovery.problem_texts import PartStep
from demo.visual import pictures


class VisualProblem(NamedTuple):
    """A problem whose solution misreads its picture at the first step with two texts, or not at all."""

    problem: str
    domain: str
    picture: bytes
    description: str
    steps: tuple[PartStep, ...]
    answers: tuple[str, str]  # the right one and the wrong one


def _both(text: str) -> PartStep:
    return PartStep(text, text)


def _list_values(kind: str, names: Sequence[str], values: Sequence[int]) -> str:
    return f"{kind}: " + ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))


def _make_library() -> VisualProblem:
    names, values, title = ("Mon", "Tue", "Wed", "Thu", "Fri"), (35, 15, 40, 55, 30), "Books lent"
    return VisualProblem(
        "The chart shows how many books a library lent on each day of a week. How many more books were lent on the"
        " best day than on the worst?",
        "bar chart",
        pictures.render_bars(title, names, values),
        _list_values(f"Bar chart, {title.lower()}", names, values),
        (
            _both("The highest bar is Thursday's and the lowest is Tuesday's."),
            _both("Thursday's bar ends halfway between the lines of 50 and 60, so 55 books were lent."),
            PartStep(
                "Tuesday's bar ends halfway between 10 and 20, so 15 books were lent.",
                "Tuesday's bar ends halfway between 20 and 30, so 25 books were lent.",
            ),
            PartStep("The difference is $55 - 15 = 40$.", "The difference is $55 - 25 = 30$."),
            PartStep("So 40 more books were lent on Thursday.", "So 30 more books were lent on Thursday."),
        ),
        ("40", "30"),
    )


def _make_museum() -> VisualProblem:
    names, values, title = ("Wed", "Thu", "Fri", "Sat", "Sun"), (20, 30, 45, 60, 50), "Visitors"
    return VisualProblem(
        "A ticket of a museum costs 4 euros. The chart shows the visitors of each day. How many euros did the museum"
        " take on Saturday and Sunday together?",
        "bar chart",
        pictures.render_bars(title, names, values),
        _list_values(f"Bar chart, {title.lower()}", names, values),
        (
            PartStep(
                "Saturday's bar reaches the line of 60, so there were 60 visitors.",
                "Saturday's bar ends halfway between 40 and 50, so there were 45 visitors.",
            ),
            _both("Sunday's bar reaches 50, so there were 50 visitors."),
            PartStep("That is $60 + 50 = 110$ visitors.", "That is $45 + 50 = 95$ visitors."),
            PartStep("They paid $110 \\cdot 4 = 440$ euros.", "They paid $95 \\cdot 4 = 380$ euros."),
        ),
        ("440", "380"),
    )


def _make_weather() -> VisualProblem:
    names, values, title = ("6:00", "9:00", "12:00", "15:00", "18:00"), (4, 8, 14, 18, 12), "Temperature (°C)"
    return VisualProblem(
        "The temperature was measured every three hours. Between which two neighboring measurements did it rise most,"
        " and by how many degrees per hour?",
        "line chart",
        pictures.render_line(title, names, values, grid=4),
        _list_values("Line chart, temperature in °C", names, values),
        (
            _both("After 15:00 the line falls, so only the four points before matter."),
            _both("At 6:00 it was 4 degrees and at 9:00 it was 8 degrees, a rise of 4."),
            PartStep(
                "At 12:00 the point is halfway between 12 and 16, at 14 degrees, a rise of 6.",
                "At 12:00 the point is at 12 degrees, a rise of 4.",
            ),
            PartStep(
                "At 15:00 it was 18 degrees, a rise of $18 - 14 = 4$.",
                "At 15:00 it was 18 degrees, a rise of $18 - 12 = 6$.",
            ),
            PartStep(
                "It rose most from 9:00 to 12:00, by $6 / 3 = 2$ degrees per hour.",
                "It rose most from 12:00 to 15:00, by $6 / 3 = 2$ degrees per hour.",
            ),
        ),
        ("from 9:00 to 12:00, by 2", "from 12:00 to 15:00, by 2"),
    )


def _make_tank() -> VisualProblem:
    names, values, title = ("0", "20", "40", "60"), (90, 70, 50, 30), "Water in a tank (liters), by minutes"
    return VisualProblem(
        "A tank loses water at a constant rate. After how many minutes is it empty?",
        "line chart",
        pictures.render_line(title, names, values, grid=20),
        _list_values("Line chart, liters of water after each number of minutes", names, values),
        (
            _both("The line begins halfway between 80 and 100, at 90 liters."),
            PartStep(
                "The next point is at 20 minutes and 70 liters.", "The next point is at 10 minutes and 70 liters."
            ),
            PartStep("So it loses $20 / 20 = 1$ liter per minute.", "So it loses $20 / 10 = 2$ liters per minute."),
            PartStep(
                "The tank is empty after $90 / 1 = 90$ minutes.", "The tank is empty after $90 / 2 = 45$ minutes."
            ),
        ),
        ("90", "45"),
    )


def _make_triangle() -> VisualProblem:
    corners = ((120, 230), (392, 230), (120, 26))
    return VisualProblem(
        "Find the area of the triangle. All lengths are in centimeters.",
        "figure",
        pictures.render_figure(corners, (((100, 128), "6"), ((276, 116), "10")), right_angle=corners[0]),
        "A triangle with a right angle at the lower left. The vertical side is 6, and the side opposite the right angle"
        " is 10. The horizontal side has no number.",
        (
            PartStep(
                "The side of 10 is opposite the right angle, so it is the hypotenuse, and 6 is a leg.",
                "The sides of 6 and 10 enclose the right angle, so they are the legs.",
            ),
            PartStep(
                "The other leg is $\\sqrt{10^2 - 6^2} = \\sqrt{64} = 8$.",
                "They are the base and the height of the triangle, so no other length is needed.",
            ),
            _both("The area of a right triangle is half of the product of its legs."),
            PartStep("Here it is $6 \\cdot 8 / 2 = 24$.", "Here it is $6 \\cdot 10 / 2 = 30$."),
            PartStep("The area is 24 square centimeters.", "The area is 30 square centimeters."),
        ),
        ("24", "30"),
    )


def _make_floor() -> VisualProblem:
    corners = ((140, 230), (365, 230), (365, 155), (240, 155), (240, 30), (140, 30))
    labels = (((252, 246), "9 m"), ((112, 130), "8 m"), ((190, 16), "4 m"), ((392, 192), "3 m"))
    return VisualProblem(
        "The figure is the floor of a room, and all its angles are right angles. A square meter of carpet costs 20"
        " euros. How many euros does a carpet for the whole floor cost?",
        "figure",
        pictures.render_figure(corners, labels, right_angle=corners[0]),
        "A floor in the shape of an L. The lower side is 9 m, the left side 8 m, the upper side 4 m, and the right side"
        " 3 m. Two sides have no number.",
        (
            _both("I cut the floor into a tall rectangle on the left and a low one on the right."),
            _both("The left one is 4 m wide and 8 m high: $4 \\cdot 8 = 32$ square meters."),
            PartStep(
                "The right one is $9 - 4 = 5$ m wide and 3 m high: $5 \\cdot 3 = 15$ square meters.",
                "The right one is 9 m wide and 3 m high: $9 \\cdot 3 = 27$ square meters.",
            ),
            PartStep(
                "The floor has $32 + 15 = 47$ square meters.",
                "The floor has $32 + 27 = 59$ square meters.",
            ),
            PartStep("The carpet costs $47 \\cdot 20 = 940$ euros.", "The carpet costs $59 \\cdot 20 = 1180$ euros."),
        ),
        ("940", "1180"),
    )


PROBLEMS = {
    "library": _make_library,
    "museum": _make_museum,
    "weather": _make_weather,
    "tank": _make_tank,
    "triangle": _make_triangle,
    "floor": _make_floor,
}
