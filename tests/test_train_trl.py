"""TRL's private code is what seal.train.trainer was written against."""

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.slow  # importing TRL takes seconds


def test_trls_private_code_is_what_the_trainer_was_written_against():
    import trl
    from trl.trainer import utils

    from seal.train import trl_private

    known = [(trl.GRPOTrainer, private) for private in trl_private.METHODS]
    known += [(utils, private) for private in trl_private.FUNCTIONS]
    changed = [
        private.name for home, private in known if trl_private.digest(getattr(home, private.name)) != private.digest
    ]
    remedy = f"TRL {trl.__version__} is not {trl_private.VERSION} here: see seal/train/trl_private.py"
    assert not changed, f"{', '.join(changed)} changed in TRL. {remedy}"


def test_all_that_the_trainer_overrides_of_trl_is_listed():
    from trl import GRPOTrainer

    from seal.train.trainer import SealGRPOTrainer
    from seal.train.trl_private import METHODS

    overridden = {name for name in vars(SealGRPOTrainer) if callable(getattr(GRPOTrainer, name, None))}
    assert overridden - {"__doc__", "__module__"} <= {private.name for private in METHODS}
