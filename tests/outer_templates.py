"""Report only the outermost template of a response to the tests.

Django's test client copies the context of every template that is rendered. A form renders hundreds, one for each widget
and label, and no test looks at those.
"""

import threading
from typing import Any

from django.template.base import Template
from django.test import utils

_thread = threading.local()


def install() -> None:
    """Replace what Django renders templates with in tests, before it is put into place."""
    utilities: Any = utils
    reported = utilities.instrumented_test_render

    def render(template: Template, context: Any) -> Any:
        if getattr(_thread, "is_inside", False):
            return template.nodelist.render(context)
        _thread.is_inside = True
        try:
            return reported(template, context)
        finally:
            _thread.is_inside = False

    utilities.instrumented_test_render = render
