"""`physdiffuser plugins new | check | list`: what it writes installs, passes its own test and is found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from physdiffuser.cli.plugins import KINDS, plugins, write_plugin
from physdiffuser.errors import FileError, UsageError

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"generator": "power-law", "operator": "my_cbrt", "family": "gompertz", "attention": "tempered"}


def run(
    *command: str | Path, path: Path | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    places = [str(ROOT), *(str(folder) for folder in ROOT.glob("plugins"))]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(path), *places] if path else places),
        "OMP_NUM_THREADS": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    return subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
        cwd=cwd,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_package_installs_and_passes_its_own_test(kind: str, tmp_path: Path) -> None:
    name = NAMES[kind]
    source, installed = tmp_path / "source", tmp_path / "installed"
    written = write_plugin(name, kind, source)
    assert all(path.is_file() for path in written)
    assert not any("$" in path.read_text() for path in written)
    install = run(
        "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", installed, source
    )
    assert install.returncode == 0, install.stderr
    tests = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", path=installed, cwd=source)
    assert tests.returncode == 0, tests.stdout + tests.stderr
    checked = run("-m", "physdiffuser", "plugins", "check", name, path=installed)
    assert checked.returncode == 0, checked.stderr
    assert "  ok  " in checked.stdout
    listed = run("-m", "physdiffuser", "plugins", "list", path=installed)
    (row,) = [line.split() for line in listed.stdout.splitlines() if line.split()[:2] == [kind, name]]
    assert row[2:4] == [f"physdiffuser-{name.replace('_', '-')}", "0.1.0"]
    assert (
        f"{kind}  {name}"
        not in run("-m", "physdiffuser", "plugins", "list", "--no-plugins", path=installed).stdout
    )


@pytest.mark.parametrize("kind", KINDS)
def test_new_code_is_clean(kind: str, tmp_path: Path) -> None:
    write_plugin(NAMES[kind], kind, tmp_path / "package")
    for command in (("check",), ("format", "--check")):
        config = ROOT / "pyproject.toml"
        finished = run("-m", "ruff", *command, "--config", config, "--no-cache", tmp_path / "package")
        assert finished.returncode == 0, finished.stdout


def test_the_example_is_what_new_writes(tmp_path: Path) -> None:
    example = ROOT / "examples" / "plugins" / "power-law"
    for path in write_plugin("power-law", "generator", tmp_path / "package"):
        assert (example / path.relative_to(tmp_path / "package")).read_text() == path.read_text()


@pytest.mark.parametrize("name", ["Power", "a b", "../x", "", "-x", "x-", "a--b", "é", "a" * 60, "x/y"])
def test_names_that_no_package_can_have(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="plugin name"):
        write_plugin(name, "generator", tmp_path / "package")
    assert not (tmp_path / "package").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileError, match="not an empty folder"):
        write_plugin("power-law", "generator", tmp_path)
    with pytest.raises(FileError):
        write_plugin("power-law", "generator", tmp_path / "mine.txt")
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_an_operator_needs_a_name_that_formulas_can_hold(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="use cube_root"):
        write_plugin("cube-root", "operator", tmp_path / "package")


def test_new_says_what_to_do_next(tmp_path: Path) -> None:
    result = CliRunner().invoke(plugins, ["new", "power-law", "--out", str(tmp_path / "p")])
    assert result.exit_code == 0
    assert str(tmp_path / "p" / "pyproject.toml") in result.stdout
    assert "plugins check power-law" in result.stderr


@pytest.mark.parametrize(
    ("name", "message"), [("enumaration", "did you mean 'enumeration'?"), ("zzz", "no plugin")]
)
def test_check_of_an_unknown_name_is_exit_6(name: str, message: str) -> None:
    finished = run("-m", "physdiffuser", "plugins", "check", name)
    assert finished.returncode == 6
    assert message in finished.stderr
    assert finished.stdout == ""
