"""torchvision as the oracle: imported beside a torch of another build, which lacks the compiled operations it registers."""

import pytest

torch = pytest.importorskip("torch", reason="the oracle is PyTorch")
_stand_ins = torch.library.Library("torchvision", "FRAGMENT")
for _name in ("nms", "qnms"):  # torchvision gives them shape rules when it is imported, whether they are there or not
    try:
        _stand_ins.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    except RuntimeError:  # they are
        pass
torchvision = pytest.importorskip(
    "torchvision", reason="the oracle for vision is torchvision 0.28 (pip install --no-deps)"
)
