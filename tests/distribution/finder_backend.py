"""A build backend, copied beside a plugin, whose editable installs add a finder, as setuptools' do, and no path.

The wheel it builds is setuptools' in shape, so that the tests need neither a network nor a setuptools new enough.
"""

import tomllib
from pathlib import Path
from typing import Any
from zipfile import ZipFile

FINDER = """\
import sys
from importlib.util import spec_from_file_location

MAPPING = {mapping!r}


class EditableFinder:
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        folder = MAPPING.get(fullname)
        return spec_from_file_location(fullname, folder + "/__init__.py") if folder else None


def install():
    sys.meta_path.append(EditableFinder)
"""


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    """Write an editable wheel for the packages in the current folder (PEP 660), and return its name."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"], project["version"]
    stem = f"{name.replace('-', '_')}-{version}"
    mapping = {path.parent.name: str(path.parent.resolve()) for path in Path.cwd().glob("*/__init__.py")}
    entries = [f"{name} = {value}\n" for name, value in project["entry-points"]["opencode.plugins"].items()]
    files = {
        "__editable___finder.py": FINDER.format(mapping=mapping),
        "__editable__.pth": "import __editable___finder; __editable___finder.install()\n",
        f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: finder\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{stem}.dist-info/entry_points.txt": "[opencode.plugins]\n" + "".join(entries),
    }
    record = f"{stem}.dist-info/RECORD"
    files[record] = "".join(f"{name},,\n" for name in [*files, record])
    built = Path(wheel_directory, f"{stem}-py3-none-any.whl")
    with ZipFile(built, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return built.name
