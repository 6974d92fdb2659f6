"""Create the tables of an empty database without rebuilding related model classes after each operation.

Django rebuilds them so that earlier states stay available, which takes most of the time of a first start. On an empty
database nothing uses an earlier state. Later migrations run as Django runs them.
"""

from typing import Any

from django.db.migrations.state import ModelState, ProjectState


def install() -> None:
    """Patch the migration state of this process."""
    state: Any = ProjectState
    state.add_model = _add_model
    state._append_option = _append_option  # used for constraints and indexes


def _add_model(state: Any, model_state: ModelState) -> None:
    key = model_state.app_label, model_state.name_lower
    state.models[key] = model_state
    if state._relations is not None:
        state.resolve_model_relations(key)
    if "apps" in vars(state):  # accessing it would build all classes
        state.apps.render_multiple([model_state])


def _append_option(state: Any, app_label: str, model_name: str, option: str, added: Any) -> None:
    options = state.models[app_label, model_name].options
    options[option] = [*options[option], added]
    if "apps" in vars(state):
        setattr(state.apps.get_model(app_label, model_name)._meta, option, options[option])
