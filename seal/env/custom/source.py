"""A Python module of the user's, run anew whenever it is asked for, so that no run sees what another one left."""

import contextlib
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from seal.core.errors import ParamError
from seal.env.limit import TimedOut, time_limit

SECONDS = 30.0  # of computing, for loading a module


class Source:
    """The file of a dotted name. `root`: a folder to import from, beside what is installed. Raises ParamError."""

    def __init__(self, name: str, root: Path):
        self._spec = _find(name, root)
        file = Path(self._spec.origin)
        try:
            self._code = compile(file.read_bytes(), str(file), "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise ParamError("module", f"{file}: {error}", "mend it") from None
        self.folder, self.digest = file.parent, hashlib.blake2b(file.read_bytes(), digest_size=4).hexdigest()

    def run(self) -> ModuleType:
        """The module, run anew. While it runs it goes by its name, which dataclasses ask for."""
        name, module = self._spec.name, importlib.util.module_from_spec(self._spec)
        before = sys.modules.get(name)
        sys.modules[name] = module
        loaded = False
        try:
            with time_limit(SECONDS), contextlib.redirect_stdout(sys.stderr):
                exec(self._code, vars(module))  # an import without the cache: the file the user named, no other text
            loaded = True
        except TimedOut:
            value = f"{name}: ran for more than {SECONDS:g} seconds"
            raise ParamError("module", value, "it must load quickly: put slow work into a tool, or a file") from None
        except (Exception, SystemExit) as error:  # whatever the user's module raises
            value = f"{name}: {type(error).__name__}: {error}"
            raise ParamError("module", value, "it must load without an error") from error
        finally:
            if before is not None:
                sys.modules[name] = before
            elif not loaded:
                del sys.modules[name]
        return module

    def function(self, name: str) -> Callable[..., Any] | None:
        """A function of the module by its name."""
        found = vars(self.run()).get(name)
        return found if inspect.isfunction(found) else None


def _find(name: str, root: Path) -> ModuleSpec:
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))  # for good: what the functions import when they run must be found too
    importlib.invalidate_caches()  # a file written a moment ago counts
    problem = "there is no such module"
    try:
        spec = importlib.util.find_spec(name) if name else None
    except (ImportError, ValueError, AttributeError) as error:
        spec, problem = None, str(error)
    if spec and not (spec.origin or "").endswith(".py"):
        spec, problem = None, "it is no Python file"
    if spec is None:
        remedy = f"write it as my_pkg.my_tools: a file my_pkg/my_tools.py in {root}, or an installed module"
        raise ParamError("module", f"{name or 'none given'}: {problem}", remedy)
    return spec
