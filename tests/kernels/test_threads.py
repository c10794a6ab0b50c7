"""The context that keeps torch to one thread."""

from __future__ import annotations

import torch

from seqopt.kernels.threads import one_thread


def test_contexts_nest_and_restore_the_number_whatever_happens():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_thread():
            with one_thread():
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        try:
            with one_thread():
                raise KeyError
        except KeyError:
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
