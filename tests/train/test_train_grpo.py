"""The objective against hand-worked values and gradients."""

import math

import pytest

torch = pytest.importorskip("torch")

from clew.train.learn.grpo import Objective, estimate_kl  # noqa: E402


def _tensor(*values, grad=False):
    return torch.tensor(values, dtype=torch.float64, requires_grad=grad)


def test_on_policy_the_gradient_is_minus_the_weighed_advantage():
    new = _tensor(-1.0, -2.0, grad=True)
    loss, told = Objective(beta=0.0)(new, new.detach(), _tensor(1.0, -2.0), _tensor(0.5, 0.25))
    loss.backward()
    # ratio 1: −(0.5·1 + 0.25·(−2)) = 0; d/dnew = −w·A
    assert loss.item() == pytest.approx(0.0)
    assert new.grad.tolist() == pytest.approx([-0.5, 0.5])
    assert (float(told["clipped"]), float(told["drift"])) == (0.0, 0.0)


def test_a_ratio_beyond_the_clip_stops_pulling_but_still_pushes_back():
    # ratios 1.5, 1.5, 0.5, 0.5 with ε 0.2
    new = _tensor(*(math.log(r) for r in (1.5, 1.5, 0.5, 0.5)), grad=True)
    advantage = _tensor(1.0, -1.0, 1.0, -1.0)
    loss, told = Objective(clip=0.2, beta=0.0)(
        new, torch.zeros(4).double(), advantage, torch.ones(4).double()
    )
    loss.backward()
    # min(1.5, 1.2), min(−1.5, −1.2), min(0.5, 0.8), min(−0.5, −0.8)
    assert loss.item() == pytest.approx(-(1.2 - 1.5 + 0.5 - 0.8))
    assert new.grad.tolist() == pytest.approx([0.0, 1.5, -0.5, 0.0])
    assert float(told["clipped"]) == 4


def test_divergence_is_never_negative_and_zero_where_equal():
    new, reference = _tensor(-1.0, -1.0, -3.0), _tensor(-1.0, -2.0, -1.0)
    found = estimate_kl(new, reference)
    assert found.tolist() == pytest.approx([0.0, math.exp(-1) + 1 - 1, math.exp(2) - 2 - 1])


def test_the_reference_pulls_by_beta():
    new = _tensor(-1.0, grad=True)
    loss, told = Objective(beta=0.1)(new, new.detach(), _tensor(0.0), _tensor(1.0), _tensor(-2.0))
    loss.backward()
    # KL = e^(ref−new) − (ref−new) − 1 with ref−new = −1; d/dnew = 1 − e^(ref−new)
    assert loss.item() == pytest.approx(0.1 * math.exp(-1))
    assert new.grad.tolist() == pytest.approx([0.1 * (1 - math.exp(-1))])
    assert float(told["kl"]) == pytest.approx(math.exp(-1))


def test_losses_of_two_batches_add_up_to_that_of_one():
    torch.manual_seed(0)
    new, old, worth, weight, ref = (torch.randn(6).double() for _ in range(5))
    whole, _ = Objective()(new, old, worth, weight, ref)
    parts = [
        Objective()(*(one[part] for one in (new, old, worth, weight, ref)))[0]
        for part in (slice(0, 2), slice(2, 6))
    ]
    assert whole.item() == pytest.approx(sum(parts).item())
