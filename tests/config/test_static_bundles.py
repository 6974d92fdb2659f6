"""Modules and style sheets that are joined for browsers. A journey runs the joined modules."""

import re
from pathlib import Path
from typing import Any

import pytest

from config import static_files
from config.static_bundles import ENTRIES, SHEETS, BundleError, build_bundles, join_sheets, plan_bundles, strip_sheet
from config.static_files import read_source

STATIC = Path(__file__).parents[2] / "static"
WORK = {
    "js/work/work.js": """import { a } from "./a.js";
import { b as c } from "./b.js";
const later = () => import("./later.js");
""",
    "js/work/a.js": """import { b } from "./b.js";
// a comment
export const a = {
  c: 1, // a comment
  url: "x // y",
};
""",
    "js/work/b.js": "const secret = 2;\nexport function b() {}\nexport { secret };\n",
    "js/work/later.js": 'import { b } from "./b.js";\nexport class Later {}\n',
}


def test_what_several_need_is_in_a_bundle_of_its_own() -> None:
    bundles = plan_bundles(WORK.__getitem__)
    assert {entry: (each.modules, each.needs) for entry, each in bundles.items()} == {
        "": (["js/work/b.js"], []),
        "js/work/work.js": (["js/work/a.js", "js/work/work.js"], ["js/work/common.bundle.js"]),
        "js/work/later.js": (["js/work/later.js"], ["js/work/common.bundle.js"]),
    }


def test_modules_are_functions_that_return_what_they_export() -> None:
    texts = dict(build_bundles(WORK.__getitem__))
    common = texts["js/work/common.bundle.js"]
    assert "function b() {}" in common
    assert "return { b, secret };" in common
    assert common.endswith("export { $work_b };\n")
    work = texts["js/work/work.bundle.js"]
    assert work.startswith('import { $work_b } from "./common.bundle.js";\n')
    assert "const { b: c } = $work_b;" in work
    assert 'import("./later.bundle.js")' in work
    assert "a comment" not in work
    assert '\nc: 1,\nurl: "x // y",\n' in work
    assert "export class Later {}" in texts["js/work/later.bundle.js"]


def test_a_module_loaded_by_itself_is_not_repeated_where_it_is_imported() -> None:
    sources = {**WORK, "js/work/a.js": 'import { Later } from "./later.js";\nexport const a = 1;\n'}
    texts = dict(build_bundles(sources.__getitem__))
    assert 'import * as $work_later from "./later.bundle.js";' in texts["js/work/work.bundle.js"]
    assert "class Later" not in texts["js/work/work.bundle.js"]


@pytest.mark.parametrize(
    "line",
    [
        'export * from "./b.js";',
        "export default 1;",
        "export let n = 1;",
        'import b from "./b.js";',
        'import * as b from "./b.js";',
    ],
)
def test_unknown_syntax_is_refused(line: str) -> None:
    with pytest.raises(BundleError):
        list(build_bundles({**WORK, "js/work/a.js": f"{line}\n"}.__getitem__))


def test_a_common_module_that_loads_others_is_refused() -> None:
    """The hashes of their names would depend on each other."""
    with pytest.raises(BundleError):
        plan_bundles({**WORK, "js/work/b.js": 'const load = () => import("./later.js");\n'}.__getitem__)


def test_the_work_page_needs_two_files_and_each_module_is_in_one() -> None:
    bundles = plan_bundles(read_source)
    modules = [module for bundle in bundles.values() for module in bundle.modules]
    assert len(set(modules)) == len(modules)
    assert {f"js/work/{path.relative_to(STATIC / 'js/work')}" for path in STATIC.glob("js/work/**/*.js")} == set(
        modules
    )
    assert len(bundles[ENTRIES[0]].needs) == 1
    texts = dict(build_bundles(read_source))
    loaded = re.findall(r'(?:from |import\()"\./([^"]+)"', texts["js/work/work.bundle.js"])
    assert {f"js/work/{name}" for name in loaded} <= texts.keys()


@pytest.mark.parametrize("name", SHEETS)
def test_sheets_are_joined_in_their_order(name: str) -> None:
    text = join_sheets(name, read_source)
    places = [text.index(strip_sheet(read_source(part))) for part in SHEETS[name]]
    assert places == sorted(places)
    assert {str(Path(part).parent) for part in SHEETS[name]} == {"css"}


def test_collected_files_are_chosen_only_if_there_are_any(settings: Any) -> None:
    assert static_files.choose_scripts("js/work/work.js")[0] == "js/work/work.js"
    assert static_files.choose_sheets("css/work_page.css") == SHEETS["css/work_page.css"]
    collected = {"BACKEND": "config.static_files.ModuleStaticStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": collected}
    assert static_files.choose_scripts("js/work/work.js") == ("js/work/work.bundle.js", ("js/work/common.bundle.js",))
    assert static_files.choose_scripts("js/math.js")[0] == "js/math.js"
    assert static_files.choose_sheets("css/work_page.css") == ("css/work_page.css",)
