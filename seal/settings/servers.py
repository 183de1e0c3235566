"""A model behind a server that speaks OpenAI's protocol, as settings name it."""

from typing import Annotated

from pydantic import Field

from seal.settings.typed import Settings, ranged

ServerUrl = Annotated[str, Field(pattern=r"^https?://[^\s/?#]\S*$")]
OptionalUrl = Annotated[str, Field(pattern=r"^(https?://[^\s/?#]\S*)?$")]  # "": there is no server


class ModelServer(Settings):
    """A model that is asked, and whose answers are kept."""

    url: OptionalUrl = ""
    "Its server, up to /v1 (empty: there is no such model)."
    model: str = ""
    "The model's name on that server."
    key_env: str = ""
    "The environment variable that holds the server's key."
    seconds: float = ranged(60.0, 0.1)
    "Seconds that an answer may take."
    cache: str = ""
    "The folder that keeps the answers."
