"""Who may import whom, and which commands must stay light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("schemas", "semif_engine", "processor", "tests", "acceptance")
MAY_IMPORT = {
    "schemas": {"schemas"},
    "semif_engine": {"semif_engine", "schemas"},
    "processor": {"processor", "semif_engine", "schemas"},
}
KAFKA = {"confluent_kafka"}
DEVICE = {"torch", "transformers", "accelerate", "safetensors", "gguf"}
MUST_NOT_KNOW = {
    "schemas": KAFKA | DEVICE,
    "semif_engine": KAFKA,
    "processor": DEVICE,  # only through semif_engine
}


def imported(tree: ast.AST, module: str) -> Iterator[str]:
    """Absolute names of the modules that are imported anywhere in `tree`, functions included.

    `module` is the module's own name, for relative imports.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = module.split(".")[: -node.level] if node.level else []
            yield ".".join([*parent, *([node.module] if node.module else [])])
        elif isinstance(node, ast.Call) and called(node) in {"import_module", "__import__"}:
            for argument in node.args[:1]:
                # A name that is computed cannot be checked: it has to be a plain text.
                assert isinstance(argument, ast.Constant), f"{module}: line {node.lineno}"
                yield str(argument.value)


def called(node: ast.Call) -> str:
    """The last part of the called function's name; empty where it has none."""
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


MODULES = [
    (package, path.relative_to(ROOT).as_posix())
    for package in MAY_IMPORT
    for path in modules(package)
]


def roots(path: str) -> set[str]:
    """The top-level packages a module imports."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    if path.endswith("__init__.py"):
        name += ".__init__"
    return {one.split(".")[0] for one in imported(tree, name)}


@pytest.mark.parametrize(("package", "path"), MODULES)
def test_imports_go_one_way(package: str, path: str) -> None:
    assert roots(path) & set(OURS) <= MAY_IMPORT[package]


@pytest.mark.parametrize(("package", "path"), MODULES)
def test_a_package_does_not_know_what_is_not_its_business(package: str, path: str) -> None:
    assert not roots(path) & MUST_NOT_KNOW[package]


def test_every_package_is_looked_at() -> None:
    assert {package for package, _ in MODULES} == set(MAY_IMPORT)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import a.b, c", {"a.b", "c"}),
        ("from a.b import c", {"a.b"}),
        ("from . import c", {"pack"}),
        ("from .other import c", {"pack.other"}),
        ("from .. import c", {""}),
        ("def f():\n    import late", {"late"}),
        ("if TYPE_CHECKING:\n    from typed import T", {"typed"}),
        ("importlib.import_module('dynamic')", {"dynamic"}),
    ],
)
def test_no_way_to_import_is_overlooked(source: str, names: set[str]) -> None:
    assert set(imported(ast.parse(source), "pack.module")) == names


def heavy_after(program: str) -> str:
    """Which heavy modules a fresh interpreter holds after `program`, comma-separated."""
    report = f"\nimport sys\nprint('heavy:', *sorted({DEVICE!r} & sys.modules.keys()), sep=',')"
    done = subprocess.run(
        [sys.executable, "-c", program + report],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.rpartition("heavy:")[2].strip().removeprefix(",")


LIGHT = [
    ["--help"],
    ["submit", "--help"],
    ["watch", "--help"],
    ["topics", "--help"],
    ["topics", "create", "--help"],
    ["topics", "check", "--help"],
    ["run", "--help"],
    ["demo", "--help"],
]


@pytest.mark.parametrize("words", LIGHT, ids=" ".join)
def test_help_is_given_without_torch(words: list[str]) -> None:
    program = (
        "from typer.testing import CliRunner\n"
        "from processor.cli import app\n"
        f"result = CliRunner().invoke(app, {words!r})\n"
        "assert result.exit_code == 0, result.output\n"
        "assert 'Usage' in result.output"
    )
    assert heavy_after(program) == ""


@pytest.mark.parametrize(
    "module",
    [
        "schemas.request",
        "schemas.generate",
        "processor.submit",
        "processor.watch",
        "processor.topics",
        "processor.commands",
    ],
)
def test_what_the_light_commands_run_on_needs_no_torch(module: str) -> None:
    assert heavy_after(f"import {module}") == ""


def test_the_check_sees_what_is_heavy() -> None:
    assert heavy_after("import safetensors") == "safetensors"
