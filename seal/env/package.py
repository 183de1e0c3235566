"""A benchmark's installed package: its folder, version and data files, found without importing it."""

import json
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from seal.core.errors import ArtifactError, DependencyError
from seal.core.types import Json


@dataclass(frozen=True, slots=True)
class Package:
    """`name` as it is imported, `distribution` as it is installed; `remedy`: how to install it."""

    name: str
    distribution: str
    remedy: str

    def root(self) -> Path:
        """Raises DependencyError when it is not installed."""
        spec = find_spec(self.name)
        if spec is None or not spec.submodule_search_locations:
            raise DependencyError("package", f"{self.name} is not installed", self.remedy)
        return Path(spec.submodule_search_locations[0])

    def version(self) -> str:
        self.root()
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return "unknown"

    def text(self, *parts: str) -> str:
        """One of the package's data files. Raises ArtifactError where it is missing."""
        try:
            return self.root().joinpath("data", *parts).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise self._broken(parts, error) from None

    def json_lines(self, *parts: str) -> list[Json]:
        """The entries of a JSON-lines data file. Raises ArtifactError where it is missing or broken."""
        try:
            return [json.loads(line) for line in self.text(*parts).splitlines() if line.strip()]
        except ValueError as error:
            raise self._broken(parts, error) from None

    def _broken(self, parts: tuple[str, ...], error: Exception) -> ArtifactError:
        remedy = f"install the pinned {self.distribution}"
        return ArtifactError(f"data file of {self.name}", f"{'/'.join(parts)}: {error}", remedy)
