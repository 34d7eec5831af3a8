"""Errors say in PyTorch's words what is wrong, and then what to do about it; no switch is needed."""

import io
import re
import subprocess
import sys
import traceback

import pytest

import mortice as mt
from mortice import nn
from mortice.nn import functional as F
from mortice.utils.data import DataLoader

WRONG = {
    "a dtype's name": (lambda: mt.zeros(1, dtype="float32"), "zeros: expected dtype to be a mortice dtype", "Use mortice.float32."),
    "another library's dtype": (
        lambda: mt.ones_like(mt.ones(1), dtype=type("int8", (), {})), "ones_like: expected dtype to be a mortice dtype", "Use mortice.int8."
    ),
    "too few to write": (
        lambda: mt.zeros(3, 4).__setitem__(0, mt.ones(3)), "setitem: The expanded size of the tensor (4) must match", "Tensor sizes: [3]"
    ),
    "what another size selects": (
        lambda: mt.masked_select(mt.ones(4), mt.ones(5) > 0), "masked_select: The size of tensor a (4) must match", "Reshape or expand"
    ),
    "a mask of another size": (
        lambda: mt.ones(4).masked_fill(mt.ones(5) > 0, 1.0), "masked_fill: The size of tensor a (4) must match", "Reshape or expand"
    ),
    "a bias of another size": (
        lambda: mt.addmm(mt.ones(7), mt.ones(2, 3), mt.ones(3, 4)), "addmm: The expanded size of the tensor (4)", "Tensor sizes: [7]"
    ),
    "layers in a list": (lambda: mt.optim.SGD([], lr=0.1), "optimizer got an empty parameter list", "those in an nn.ModuleList"),
    "a list as an array": (lambda: mt.from_numpy([1.0]), "expected np.ndarray; got list.", "mortice.tensor(...) takes it"),
    "a checkpoint read as text": (lambda: mt.load(io.StringIO("text")), "load: ", "Open it with open(path, 'rb')."),
    "a dtype's name for a device": (
        lambda: mt.ones(1).to("float16"), "device type at start of device string: float16", "a dtype: use mortice.float16."
    ),
    "a model for its parameters": (
        lambda: mt.optim.SGD(nn.Linear(2, 2), 0.1), "should be an iterable of Tensors or dicts, but got Linear", "Give its .parameters()."
    ),
    "a last batch of one": (
        lambda: nn.BatchNorm1d(3)(mt.ones(1, 3)), "Expected more than 1 value per channel when training", "drop_last=True"
    ),
    "a copy of another size": (
        lambda: mt.ones(2).copy_(mt.ones(3)), "copy_: The size of tensor a (2) must match the size of tensor b (3)", "Reshape or expand"
    ),
    "a copy of more dims": (
        lambda: mt.ones(2).copy_(mt.ones(3, 2)), "copy_: output with shape [2]", "doesn't match the broadcast shape [3, 2]"
    ),
    "pieces of another sum": (
        lambda: mt.utils.data.random_split(range(9), [1, 2]), "Sum of input lengths does not equal", "Got [1, 2] for 9."
    ),
    "float64 input": (
        lambda: nn.Linear(3, 2)(mt.ones(4, 3, dtype=mt.float64)),
        "mat1 and mat2 must have the same dtype", "The input is float64 (NumPy's default), the weight float32. Use input.float()",
    ),
    "pixels": (
        lambda: nn.Conv2d(3, 2, 3)(mt.ones(1, 3, 8, 8, dtype=mt.uint8)),
        "should be the same", "The input is uint8, the weight float32. Use input.float().",
    ),
    "half model": (
        lambda: nn.Linear(3, 2).bfloat16()(mt.ones(4, 3)),
        "mat1 and mat2 must have the same dtype", "Use input.bfloat16(), or convert the module with .float().",
    ),
    "channels last": (
        lambda: nn.Conv2d(3, 2, 3)(mt.ones(4, 32, 32, 3)),
        "expected input[4, 32, 32, 3] to have 3 channels, but got 32 channels instead", "use x.permute(0, 3, 1, 2).",
    ),
    "channels last, one image": (
        lambda: nn.Conv2d(3, 2, 3)(mt.ones(32, 32, 3)), "to have 3 channels, but got 32", "use x.permute(2, 0, 1)."
    ),
    "channels last, a series": (
        lambda: nn.Conv1d(5, 2, 3)(mt.ones(4, 10, 5)), "to have 5 channels, but got 10", "use x.permute(0, 2, 1)."
    ),
    "channels last, batch norm": (
        lambda: nn.BatchNorm2d(3)(mt.ones(4, 8, 8, 3)), "running_mean should contain 8 elements not 3", "use x.permute(0, 3, 1, 2)."
    ),
    "no channels": (
        lambda: nn.Conv2d(1, 2, 3)(mt.ones(28, 28)), "but got input of size: [28, 28]", "use x.unsqueeze(0)."
    ),
    "not flattened": (
        lambda: nn.Linear(784, 10)(mt.ones(4, 1, 28, 28)), "(112x28 and 784x10)", "flatten it with x.flatten(1)."
    ),
    "targets in a column": (
        lambda: F.cross_entropy(mt.ones(4, 3), mt.ones(4, 1, dtype=mt.int64)),
        "0D or 1D target tensor expected, multi-target not supported", "Expected target size [4], got [4, 1]. Class indices have no "
        "dim of their own; use target.squeeze(1).",
    ),
    "targets of pairs in a column": (
        lambda: F.cosine_embedding_loss(mt.ones(4, 3), mt.ones(4, 3), mt.ones(4, 1)),
        "0D or 1D target tensor expected, multi-target not supported", "use target.squeeze(1).",
    ),
    "targets one-hot": (
        lambda: F.nll_loss(mt.ones(4, 3), mt.ones(4, 3, dtype=mt.int64)), "multi-target not supported", "use target.argmax(1)."
    ),
    "labels one-hot": (
        lambda: F.cross_entropy(mt.ones(4, 3), mt.ones(4, 3, dtype=mt.int64)),
        "Expected floating point type for target with class probabilities, got int64", "use target.argmax(1).",
    ),
    "maps with a channel": (
        lambda: F.cross_entropy(mt.ones(4, 3, 5, 6), mt.ones(4, 1, 5, 6, dtype=mt.int64)),
        "only batches of spatial targets supported (3D tensors) but got targets of dimension: 4", "use target.squeeze(1).",
    ),
    "one target for a batch": (
        lambda: F.nll_loss(mt.ones(4, 3), mt.tensor(1)), "Expected input batch_size (4) to match target batch_size (0)", "got input [4, 3]"
    ),
    "float targets": (
        lambda: F.cross_entropy(mt.ones(4, 3), mt.ones(4)), "expected target dtype to be Long or Byte, but got", "Use target.long()"
    ),
    "float labels": (
        lambda: F.nll_loss(mt.ones(4, 3), mt.ones(4)), "expected target dtype to be Long or Byte, but got", "Use target.long()"
    ),
    "float indices": (
        lambda: F.embedding(mt.ones(4), mt.ones(4, 3)),
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got", "Use .long()",
    ),
    "many as one": (lambda: mt.ones(3).item(), "a Tensor with 3 elements cannot be converted to Scalar", "Use .tolist()"),
    "a write into a leaf": (
        lambda: mt.ones(3, requires_grad=True).add_(1),
        "a leaf Variable that requires grad is being used in an in-place operation.", "under no_grad()",
    ),
    "transposed channels": (
        lambda: nn.ConvTranspose2d(3, 2, 3)(mt.ones(1, 4, 5, 5)), "Given transposed=1, weight of size [3, 2, 3, 3], expected", "but got 4"
    ),
    "a layer not made": (lambda: nn.Sequential(nn.Linear(1, 2), nn.ReLU), "is not a Module subclass", "Make one of it: ReLU()."),
    "a function as a layer": (lambda: nn.Sequential(mt.relu), "relu is not a Module subclass", "Call it in forward"),
    "a device that is not there": (
        lambda: mt.ones(2, device="gpu"),
        "device type at start of device string: gpu; available: cpu", "install the plugin that offers 'gpu'.",
    ),
    "a view in an optimiser": (
        lambda: mt.optim.SGD([nn.Linear(3, 2).weight.view(-1)], lr=0.1),
        "can't optimize a non-leaf Tensor", "of shape [6], was made by View. Optimize the parameter itself",
    ),
    "xavier on a bias": (
        lambda: nn.init.xavier_uniform_(mt.ones(3)), "fewer than 2 dimensions", "Initialise biases with zeros_ or constant_."
    ),
    "an item of None": (
        lambda: next(iter(DataLoader([(1, None)] * 3, batch_size=3))), "found <class 'NoneType'>", "This was field 1 of each item."
    ),
    "ragged items": (
        lambda: next(iter(DataLoader([mt.ones(n) for n in (1, 2, 3)], batch_size=2))),
        "stack expects each tensor to be equal size, but got [1] at entry 0 and [2]", "The batch was made of list[i] for i in [0, 1].",
    ),
    "no graph": (lambda: mt.ones(3).sum().backward(), "does not have a grad_fn", "under no_grad"),
    "max unpacked": (
        lambda: (lambda values, indices: values)(*mt.ones(3).max()),
        "iteration over a 0-d tensor", "only with a dim do max() and min()",
    ),
    "a list of tensors": (
        lambda: mt.tensor([mt.ones(3), mt.ones(3)]), "only one element tensors can be converted", "Use mortice.stack(list)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_what_it_says(wrong):
    run, theirs, ours = WRONG[wrong]
    with pytest.raises((RuntimeError, TypeError, ValueError)) as caught:
        run()
    said = "".join(traceback.format_exception_only(caught.value))
    assert theirs in said and ours in said


def test_logits_without_a_batch_take_a_target_of_one_element():
    x = mt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for reduction in ("mean", "none"):
        loss = F.cross_entropy(x, mt.tensor([2]), reduction=reduction)
        assert loss.shape == () and abs(loss.item() - 0.40760597) < 1e-6
    F.nll_loss(x, mt.tensor([1])).backward()
    assert x.grad.tolist() == [0.0, -1.0, 0.0]


def test_a_channels_hint_is_not_given_where_it_would_not_help():
    with pytest.raises(RuntimeError, match="channels instead$"):
        nn.Conv2d(3, 2, 3)(mt.ones(4, 5, 32, 32))


def test_a_parameter_that_was_stepped_is_named_as_the_cause():
    d, g = nn.Linear(3, 1), nn.Linear(2, 3)
    optimizer = mt.optim.SGD(d.parameters(), lr=0.1)
    out = d(g(mt.ones(4, 2)))
    out.sum().backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match=re.escape("a leaf, is at version")) as caught:
        out.square().sum().backward()
    assert "optimizer.step() changed it after the forward" in str(caught.value)


def test_a_near_name_is_shown():
    # By the interpreter, where the error says which name of which object was asked for.
    for wrong, near in (("nn.Linear(3, 2).weigth", "weight"), ("mortice.ones(3).require_grad", "requires_grad")):
        code = f"import mortice\nfrom mortice import nn\n{wrong}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert f"Did you mean: '{near}'?" in done.stderr
