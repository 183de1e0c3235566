"""The JSON Schema of params.yaml and of presets, made from the settings: `python -m seal.settings.schema` writes it."""

import json
from pathlib import Path
from typing import Annotated, Any, Union

from pydantic import Field, create_model
from pydantic.json_schema import GenerateJsonSchema

from seal.settings.envs import ENVS
from seal.settings.policies import POLICIES
from seal.settings.rounds import Defaults, FlowParams, Round, RunParams, Start
from seal.settings.typed import Settings

PATH = Path("params.schema.json")  # at the root, where the first line of params.yaml and of presets looks for it


class AnyStart(Start):
    """Where a line of rounds starts: a policy in an environment, evaluated once."""

    policy: Annotated[Union[*POLICIES.values()], Field(discriminator="kind")]
    "The policy, by its `kind`."


_ENTRIES = {name: (kind | None, None) for name, kind in ENVS.items()}
Environments = create_model("Environments", **_ENTRIES, __base__=Settings)


class File(Settings):
    """params.yaml of SEAL, or a preset."""

    run: RunParams | None = None
    "What holds for all stages."
    flow: FlowParams | None = None
    "When `seal run` stops adding to a line of rounds."
    envs: Environments | None = None
    "The environments that starts and rounds may name."
    starts: dict[str, AnyStart | None] | None = None
    "Where lines of rounds start."
    defaults: Defaults | None = None
    "What the first round of a line takes where nothing else is said."
    rounds: dict[str, Round] | None = None
    "The rounds, each with its parent; a preset's say only what differs."


class _Untitled(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema() -> str:
    """As JSON text. No key is needed but those without which an entry, of a preset too, says nothing."""
    found = File.model_json_schema(schema_generator=_Untitled)
    found["$defs"]["Round"]["required"] = ["parent"]
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **found}, indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(schema())
