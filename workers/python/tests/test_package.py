"""The package as it is published: its version in one place, its wheel whole."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from support import HERE, SOURCE

import outlast

PACKAGE = HERE.parent


class Package(unittest.TestCase):
    def test_the_version_is_the_same_everywhere(self) -> None:
        found = re.search(r'^version = "(.*)"$', (PACKAGE / "pyproject.toml").read_text(), re.MULTILINE)
        assert found is not None
        self.assertEqual(outlast.__version__, found[1])

    def test_what_is_exported_is_there_and_typed(self) -> None:
        for name in outlast.__all__:
            self.assertTrue(hasattr(outlast, name), name)
        self.assertTrue((SOURCE / "outlast" / "py.typed").is_file())

    def test_nothing_but_the_standard_library_is_imported(self) -> None:
        for path in (SOURCE / "outlast").glob("*.py"):
            for name in re.findall(r"^\s*(?:import|from) (\w+)", path.read_text(), re.MULTILINE):
                self.assertIn(name, sys.stdlib_module_names | {"outlast"}, path)

    def test_the_wheel_holds_all_modules(self) -> None:
        """Only where the tools are: nothing is installed for it."""
        try:
            if int(importlib.metadata.version("setuptools").partition(".")[0]) < 77:
                return
        except importlib.metadata.PackageNotFoundError:
            return
        with tempfile.TemporaryDirectory() as directory:
            copied = Path(directory) / "package"
            subprocess.run(["cp", "-r", str(PACKAGE), str(copied)], check=True)
            command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", directory, str(copied)]
            built = subprocess.run(command, capture_output=True, text=True)
            wheels = list(Path(directory).glob("outlast-*.whl"))
            self.assertEqual((built.returncode, len(wheels)), (0, 1), built.stderr)
            with zipfile.ZipFile(wheels[0]) as wheel:
                held = {name.removeprefix("outlast/") for name in wheel.namelist() if name.startswith("outlast/")}
        self.assertEqual(held, {path.name for path in (SOURCE / "outlast").iterdir() if path.is_file()})


if __name__ == "__main__":
    unittest.main()
