"""What a model file reveals stays within what docs/what-a-model-file-reveals.md says."""

import pytest

from hostile import leaks


@pytest.mark.slow
def test_who_took_part_is_hardly_known_from_a_model():
    assert 0.45 < leaks.membership(beta=0.0, k=8) < 0.65
