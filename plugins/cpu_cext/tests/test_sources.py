"""What compilers see differently in the C++ sources: a variable that is a template is one for all files that call it so.

Older GCC gave each file its own. Newer ones and clang join them by name: a table `SET<float>` of one file would then be
read by another, or the linker ends with several definitions.
"""

import re
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src"
FILES = sorted(SOURCES.rglob("*.[ch]pp"))
# A variable, not a function: its name is followed by `=` or `<...> =`.
VARIABLE = re.compile(r"^template <(.*)> (static |inline )?(?:const|constexpr) [\w:<>, ]+? (\w+)(?:<[^>]*>)? ?= ", re.M)


def shared(file: Path) -> list[str]:
    """Return the names of those that the file shares with others, though each file is to have its own."""
    text = file.read_text(encoding="utf-8")
    own = text.find("\nnamespace {\n")
    names = []
    for found in VARIABLE.finditer(text):
        whole = found[1] == ""  # a specialization, which no file but one may have
        if not found[2] and (whole or file.suffix == ".cpp" and not 0 < own < found.start()):
            names.append(found[3])
    return names


def test_templates_of_variables_are_the_files_own():
    assert len(FILES) > 100
    assert {file.name: names for file in FILES if (names := shared(file))} == {}


def test_the_pattern_finds_what_it_looks_for():
    found = VARIABLE.findall(
        "template <class T> constexpr Table<T> SET = {1};\ntemplate <> constexpr bool floats<float> = true;\n"
    )
    assert found == [("class T", "", "SET"), ("", "", "floats")]
