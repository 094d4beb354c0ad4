"""What docs/plugins.md shows runs as written, and configurations in the documentation follow the schema."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from physdiffuser.cli.plugins import KINDS, write_plugin
from physdiffuser.config import TrainingConfig, parse_training_config
from physdiffuser.errors import UsageError
from physdiffuser.io.safe_yaml import load_yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in (*DOCS.glob("*.md"), *DOCS.glob("tutorials/*.md")))
PLUGINS = (DOCS / "plugins.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```|((?:^ {4}[^\n]*\n)+)", re.M | re.S)
CONFIGURATION = re.compile(
    r'^```yaml\n(.*?)^```|^configuration = """\n(.*?)"""|((?:^ {4}[^\n]*\n)+)', re.M | re.S
)
PROGRAMS = {
    "physdiffuser": "from physdiffuser.cli.entry import main; sys.exit(main())",
    "pip": "from pip._internal.cli.main import main; sys.exit(main())",
    "pytest": "import pytest; sys.exit(pytest.main())",
}


def blocks(text: str) -> list[tuple[str, str]]:
    """Language and content of each code block, in order; indented ones are commands."""
    found = []
    for language, fenced, indented in BLOCK.findall(text):
        found.append((language, fenced) if fenced else ("", re.sub(r"^ {4}", "", indented, flags=re.M)))
    return found


@pytest.fixture(scope="module", name="environment")
def _environment(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder with data.csv, and an environment of its own that sees the packages of this one."""
    folder = tmp_path_factory.mktemp("plugin_docs")
    venv.create(folder / "venv", with_pip=False)
    places = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
    here = Path(sysconfig.get_path("purelib", "venv", vars=places))
    (here / "parent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    programs = Path(sysconfig.get_path("scripts", "venv", vars=places))
    for name, program in PROGRAMS.items():
        script = programs / name
        script.write_text(f"#!{programs / 'python'}\nimport sys\n{program}\n", encoding="utf-8")
        script.chmod(0o755)
    rows = np.random.default_rng(0).uniform(0.5, 5, (60, 2))
    table = np.column_stack([rows, 3 * rows[:, 0] * rows[:, 1]])
    np.savetxt(folder / "data.csv", table, delimiter=",", header="a,b,y", comments="", fmt="%.17g")
    settings = {
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
        "OMP_NUM_THREADS": "1",
        # Without the network: dependencies are there already, and so are the build tools.
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    cleared = {name: value for name, value in os.environ.items() if not name.startswith("PHYSDIFFUSER_")}
    return folder, cleared | settings


def test_the_page_on_plugins_runs_as_written(environment: tuple[Path, dict[str, str]]) -> None:
    folder, variables = environment
    name, python, ran = "", [], []
    place = 0
    for language, content in blocks(PLUGINS):
        start = PLUGINS.index(content.splitlines()[0], place)
        name, place = PLUGINS[place:start], start
        if language == "python":
            python.append(content)
        elif language == "yaml":
            (folder / re.findall(r"`([\w-]+\.yaml)`", name)[-1]).write_text(content, encoding="utf-8")
        elif not language:
            done = subprocess.run(
                ["bash", "-euc", content], cwd=folder, env=variables, capture_output=True, text=True,
                timeout=400, check=False,
            )  # fmt: skip
            assert done.returncode == 0, content + done.stdout + done.stderr
            ran += content.splitlines()
    done = subprocess.run(
        [folder / "venv" / "bin" / "python", "-c", "\n".join(python)], cwd=folder, env=variables,
        capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("[") == 3  # what the three checks say
    # Every kind is made, installed, checked and used.
    commands = "\n".join(ran)
    for kind in KINDS:
        assert f"--kind {kind}" in commands
    assert commands.count("plugins check") == commands.count("plugins new") == len(KINDS)
    assert "PHYSDIFFUSER_WEIGHTS=" in commands and "physdiffuser train" in commands


def test_a_plain_install_is_enough() -> None:
    """What needs pytest comes with the extra that installs it."""
    for page in (*PAGES, *(ROOT / "physdiffuser" / "cli" / "plugin_templates").iterdir()):
        for language, content in blocks(page.read_text(encoding="utf-8")):
            for line in content.splitlines() if not language else ():
                if re.search(r"&& pytest|^pytest physdiffuser-|^pytest$", line):
                    assert "[test]" in line, f"{page.name}: {line}"


def valid(settings: dict[str, Any]) -> str:
    """The fault of a configuration, or of a part of one; empty if there is none."""
    try:
        parse_training_config({"out": "run", "steps": 1} | settings, "page")
    except UsageError as error:
        return str(error)
    return ""


def configurations(text: str) -> list[dict[str, Any]]:
    """The YAML blocks of a page that hold keys of a training configuration."""
    found = []
    for fenced, assigned, indented in CONFIGURATION.findall(text):
        plain = fenced or assigned or re.sub(r"^ {4}", "", indented, flags=re.M)
        try:
            content = load_yaml(plain, "page")
        except UsageError:
            content = None
        if isinstance(content, dict) and (
            fenced or assigned or content.keys() & TrainingConfig.model_fields.keys()
        ):
            found.append(content)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_configurations_follow_the_schema(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for settings in configurations(text):
        assert valid(settings) == "", page
    for path, value in re.findall(r"`([a-z_.]+): ([^`\n]+)`", text):
        content = load_yaml(value, "page")
        options = [_nested(path, content), *(_nested(f"{part}.{path}", content) for part in _sections())]
        # Of three places for an attention, a name alone says none.
        fitting = [
            settings for settings in options if not valid({"batch": 4096, "micro_batch": 1} | settings)
        ]
        assert len(fitting) == 1, (
            f"{page.name}: `{path}: {value}` fits {len(fitting)} places; write the full path"
        )


def test_paths_in_the_text_name_keys() -> None:
    for page in PAGES:
        for path in re.findall(r"`(model\.[a-z_.]+)`", page.read_text(encoding="utf-8")):
            kind: Any = TrainingConfig
            for part in path.split("."):
                assert part in kind.model_fields, f"{page.name}: {path}"
                kind = kind.model_fields[part].annotation


def _sections() -> list[str]:
    return ["data", "model", "optimiser", "model.encoder", "model.diffusion", "model.autoregressive"]


def _nested(path: str, value: Any) -> dict[str, Any]:
    for part in reversed(path.split(".")):
        value = {part: value}
    return dict(value)


def test_a_key_in_the_wrong_place_is_noticed() -> None:
    (settings,) = configurations("```yaml\nmodel:\n  attention: cosine\n```\n")
    assert "model.attention" in valid(settings)
    assert valid(_nested("model.encoder.attention", "cosine")) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_the_readme_of_a_new_package_names_valid_keys(kind: str, tmp_path: Path) -> None:
    write_plugin("mine", kind, tmp_path)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"# with `(.+)` in it", text)
    assert bool(named) == (kind == "attention")
    for content in named:
        settings = load_yaml(content, "README")
        assert isinstance(settings, dict) and valid(settings) == ""
