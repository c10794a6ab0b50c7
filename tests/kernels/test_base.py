"""What a kernel says of itself, and the precision in which its state is read."""

from __future__ import annotations

import pytest
import torch
from gpytorch.kernels import Kernel, ScaleKernel

from seqopt.kernels import (
    JointKernel,
    MinMaxKernel,
    NgramKernel,
    OneHotKernel,
    SubsequenceKernel,
    TanimotoKernel,
)

TWO = torch.Size([2])
SHOWN = {
    "SubsequenceKernel(order=3, match_decay=0.25, gap_decay=1)": SubsequenceKernel(3, 0.25, 1.0),
    "SubsequenceKernel(order=2, match_decay=0.8, gap_decay=0.5, normalize=False, order_weights=[1, 0.5])": (
        SubsequenceKernel(2, normalize=False, order_weights=[1.0, 0.5])
    ),
    "SubsequenceKernel(order=5, match_decay=[0.8, 0.8], gap_decay=[0.5, 0.25], batch_shape=torch.Size([2]))": (
        SubsequenceKernel(gap_decay=torch.tensor([0.5, 0.25]), batch_shape=TWO)
    ),
    "SubsequenceKernel(order=5, match_decay=0.8, gap_decay=0.5, partitions=2, engine='reference', active_dims=(1,))": (
        SubsequenceKernel(partitions=2, engine="reference", active_dims=(1,))
    ),
    "NgramKernel(longest=4, lengthscale=7.5)": NgramKernel(4, 7.5),
    "NgramKernel(longest=5, lengthscale=[15, 15], batch_shape=torch.Size([2]))": NgramKernel(batch_shape=TWO),
    "OneHotKernel()": OneHotKernel(),
    "OneHotKernel(active_dims=(0, 1))": OneHotKernel(active_dims=(0, 1)),
    "TanimotoKernel()": TanimotoKernel(),
    "MinMaxKernel(batch_shape=torch.Size([2]))": MinMaxKernel(batch_shape=TWO),
    "JointKernel(SubsequenceKernel(order=4, match_decay=0.8, gap_decay=0.5), MinMaxKernel(), 64, weight=0.25)": (
        JointKernel(SubsequenceKernel(4), MinMaxKernel(), 64, weight=0.25)
    ),
}


@pytest.mark.parametrize("text", SHOWN)
def test_a_kernel_shows_its_parameters_as_the_call_that_makes_it(text: str) -> None:
    assert repr(SHOWN[text]) == text
    assert text in repr(ScaleKernel(SHOWN[text]))


def test_what_is_shown_follows_the_parameters() -> None:
    kernel = SubsequenceKernel()
    kernel.match_decay = 1 / 3
    assert repr(kernel) == "SubsequenceKernel(order=5, match_decay=0.3333, gap_decay=0.5)"


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (SubsequenceKernel, "match_decay"),
        (SubsequenceKernel, "gap_decay"),
        (lambda: SubsequenceKernel(2, order_weights=[1.0, 1.0]), "order_weights"),
        (lambda: SubsequenceKernel(batch_shape=torch.Size([2])), "gap_decay"),
        (NgramKernel, "lengthscale"),
        (lambda: JointKernel(SubsequenceKernel(), TanimotoKernel(), 3), "weight"),
    ],
)
@pytest.mark.parametrize("value", [1 / 3, 0.8])
@pytest.mark.parametrize("wrap", [lambda kernel: kernel, ScaleKernel])
def test_a_state_of_double_precision_is_read_as_it_is(make, name: str, value: float, wrap) -> None:
    saved = make().double()
    with torch.no_grad():
        getattr(saved, f"raw_{name}").fill_(value)
    loaded: Kernel = make()
    wrap(loaded).load_state_dict(wrap(saved).state_dict())
    torch.testing.assert_close(getattr(loaded, f"raw_{name}"), getattr(saved, f"raw_{name}"), rtol=0, atol=0)
    assert getattr(loaded, name).detach().double().flatten()[0].item() == value
    # Nothing else changes: a state of single precision leaves the kernel as it is.
    single = make()
    single.load_state_dict({key: tensor.float() for key, tensor in make().state_dict().items()})
    assert getattr(single, f"raw_{name}").dtype == getattr(make(), f"raw_{name}").dtype
    torch.testing.assert_close(getattr(single, name), getattr(make(), name), rtol=1e-7, atol=0)


def test_a_loaded_kernel_gives_the_covariances_of_the_saved_one() -> None:
    strings = ["ACGTACGT", "AGT", "TTACG"]
    saved = SubsequenceKernel(3, 1 / 3, 2 / 7).double()
    with torch.no_grad():
        saved.raw_gap_decay.fill_(0.123456789012345)
    loaded = SubsequenceKernel(3)
    loaded.load_state_dict(saved.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(loaded.gap_decay, saved.gap_decay, rtol=0, atol=0)
    by_hand = SubsequenceKernel(3, saved.raw_match_decay.item(), 0.123456789012345)
    torch.testing.assert_close(loaded.gram(strings), by_hand.gram(strings), rtol=1e-14, atol=1e-14)
