"""A codec whose ids are the bytes of what is read, so that a test can compare prompts and observations to the byte."""

from seal.policy.base import Action
from seal.policy.scripted import FaultyPolicy


class TextCodec:
    format = "words"

    def prompt(self, docs, hints):
        return self._ids("system", docs, hints)

    def user(self, message, revealed):
        return self._ids("user", message, revealed)

    def results(self, shown):
        return self._ids("results", *shown)

    def decode(self, ids):
        return bytes(ids).decode()

    def encode_action(self, text):
        return self._ids("policy", text)

    def count(self, text):
        return len(text.split())

    def _ids(self, *said):
        return list(repr(said).encode())


class ReadingPolicy(FaultyPolicy):
    """Gold with faults, whose rollouts hold every byte it was shown."""

    codec = TextCodec()

    def act(self, observations, temperature, limits):
        said = super().act(observations, temperature, limits)
        codes = [tuple(self.codec.encode_action(action.text)) for action in said]
        return [Action(a.text, ids, (0.0,) * len(ids)) for a, ids in zip(said, codes, strict=True)]
