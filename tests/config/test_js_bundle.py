"""Bundles of JavaScript modules behave like the modules, even if their private names collide."""

import pytest

from config import static_files
from config.js_bundle import CannotBundle, bundle_modules

MODULES = {
    "a/main.js": 'import { one as uno, Two } from "./one.js";\nimport { deep } from "./in/deep.js";\nconst own = 1;\n'
    "say(uno() + own, new Two().n, deep);\n",
    "a/one.js": 'import { deep } from "./in/deep.js";\nconst own = 10;\nconst one = () => own;\n'
    "export class Two { n = deep; }\nexport { one };\n",
    "a/in/deep.js": "export const deep = 5;\n",
}


def test_bundle_has_imported_modules_first_and_once() -> None:
    text = bundle_modules("a/main.js", MODULES.__getitem__)
    assert text.count("const deep = 5") == 1
    assert text.index("const deep = 5") < text.index("const own = 10") < text.index("const own = 1;")
    assert "const { one: uno, Two } = _1;" in text
    assert "import" not in text
    assert "export" not in text


@pytest.mark.parametrize(
    "text",
    ["export default 1;\n", 'export * from "./one.js";\n', 'const x = await import("./x.js");\n', 'import "./x.js";\n'],
)
def test_bundle_refuses_what_it_does_not_understand(text: str) -> None:
    with pytest.raises(CannotBundle):
        bundle_modules("m.js", lambda _: text)


def test_bundle_refuses_an_import_cycle() -> None:
    circle = {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}
    with pytest.raises(CannotBundle, match="js"):
        bundle_modules("a.js", circle.__getitem__)


@pytest.mark.parametrize("path", static_files.BUNDLE_ENTRIES)
def test_our_own_modules_can_be_bundled(path: str) -> None:
    assert "\nimport" not in bundle_modules(path, static_files._read_source)
