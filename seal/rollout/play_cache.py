"""The actions of a batch that was played to its end, on disk: a run that was killed later takes them again.

Episodes are played once more from them, so nothing of a rollout but what the policy said has to be kept.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from seal.policy.base import Action
from seal.store.files import atomic_file, new_folder, read_record

_SHAPE = {"actions": [[(str, list, list, str)]]}


@dataclass(frozen=True, slots=True)
class PlayCache:
    """A file a batch in an ignored folder, named by all that decided it; whoever has no more use for it removes it."""

    folder: Path

    def read(self, *decided_by: Any) -> list[list[Action]] | None:
        """The actions of each episode of a batch; None where it was not played to its end. ArtifactError: damaged."""
        path = self._path(decided_by)
        if not path.exists():
            return None
        played = read_record(path, _SHAPE)["actions"]
        return [[Action(text, tuple(ids), tuple(logprobs), end) for text, ids, logprobs, end in one] for one in played]

    def write(self, actions: Sequence[Sequence[Action]], *decided_by: Any) -> None:
        new_folder(self.folder)
        with atomic_file(self._path(decided_by)) as partial:
            partial.write_text(json.dumps({"actions": [[astuple(action) for action in one] for one in actions]}))

    def _path(self, decided_by: Sequence[Any]) -> Path:
        return self.folder / f"{hashlib.blake2b(repr(decided_by).encode(), digest_size=8).hexdigest()}.json"
