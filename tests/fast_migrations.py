"""How the test database is made: by the migrations, as everywhere, but without what Django does for nothing there.

After each new table, constraint and index it makes the classes of all models anew that are related to it, so that a
state from before could still be asked. Nothing goes back here, and on an empty database most of the time went there.
"""

from typing import Any

from django.db.migrations.state import ModelState, ProjectState


def install() -> None:
    """From now on, for every migration of this process."""
    state: Any = ProjectState
    state.add_model = _add_model
    state._append_option = _append_option  # the one way of constraints and indexes


def _add_model(state: Any, model_state: ModelState) -> None:
    key = model_state.app_label, model_state.name_lower
    state.models[key] = model_state
    if state._relations is not None:
        state.resolve_model_relations(key)
    if "apps" in vars(state):  # asking for it would make all classes
        state.apps.render_multiple([model_state])


def _append_option(state: Any, app_label: str, model_name: str, option: str, added: Any) -> None:
    options = state.models[app_label, model_name].options
    options[option] = [*options[option], added]
    if "apps" in vars(state):
        setattr(state.apps.get_model(app_label, model_name)._meta, option, options[option])
