"""Transform: the base of the transforms of v2, which take apart what they get and change in it what they know."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, ClassVar

from mortice import Tensor, nn
from mortice.utils import _pytree
from mortice.vision._pillow import is_pil
from mortice.vision.transforms._draws import chance
from mortice.vision.transforms.v2._utils import check_type, has_any
from mortice.vision.transforms.v2.functional._kernels import is_pure_tensor, kernel_for
from mortice.vision.tv_tensors import Image, Video

__all__ = ["Transform"]


class Transform(nn.Module):
    """The base of transforms of samples in any nest of lists, tuples and dicts.

    A subclass has `transform`, which changes one input, and may have `make_params`, which draws what all inputs of a sample
    are changed by, and `check_inputs`. Images, videos, masks, boxes and points are changed, and of plain tensors the first,
    if there is no image or video; whatever else there is stays. `_transformed_types` are classes or tests of what is changed.
    """

    _transformed_types: tuple[Any, ...] = (Tensor, is_pil)
    _v1_transform_cls: ClassVar[Any] = None  # whose `get_params` the class has too

    def __init__(self) -> None:
        super().__init__()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if hasattr(cls._v1_transform_cls, "get_params"):
            cls.get_params = staticmethod(cls._v1_transform_cls.get_params)  # type: ignore[attr-defined]

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Refuse samples that cannot be changed."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw by what the inputs are changed, from those that will be."""
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Change one input."""
        raise NotImplementedError

    def _call_kernel(self, functional: Callable[..., Any], inpt: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function of `functional`, unless it does not know the input, which then stays."""
        return kernel_for(functional, inpt, passes=True)(inpt, *args, **kwargs)

    def _happens(self) -> bool:
        """Draw whether anything is changed."""
        return True

    def forward(self, *inputs: Any) -> Any:
        """Change a sample; subclasses have `transform` for that."""
        sample = inputs if len(inputs) > 1 else inputs[0]
        flat_inputs, spec = _pytree.tree_flatten(sample)
        self.check_inputs(flat_inputs)
        if not self._happens():
            return sample
        chosen = self._needs_transform_list(flat_inputs)
        params = self.make_params([inpt for inpt, needed in zip(flat_inputs, chosen) if needed])
        return _pytree.tree_unflatten(
            [self.transform(inpt, params) if needed else inpt for inpt, needed in zip(flat_inputs, chosen)], spec
        )

    def _needs_transform_list(self, flat_inputs: list[Any]) -> list[bool]:
        """Tell which inputs are changed."""
        a_tensor_may = not has_any(flat_inputs, Image, Video, is_pil)
        chosen = []
        for inpt in flat_inputs:
            needed = check_type(inpt, self._transformed_types)
            if needed and is_pure_tensor(inpt):
                needed, a_tensor_may = a_tensor_may, False
            chosen.append(needed)
        return chosen

    def extra_repr(self) -> str:
        """Name the settings."""
        kinds = (bool, int, float, str, tuple, list, enum.Enum)
        shown = {name: v for name, v in vars(self).items() if not name.startswith("_") and name != "training"}
        return ", ".join([f"{name}={v}" for name, v in shown.items() if isinstance(v, kinds)])


class RandomApplyTransform(Transform):
    """The base of transforms that happen with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        check_probability(p)
        super().__init__()
        self.p = p

    def _happens(self) -> bool:
        return chance() < self.p


def check_probability(p: float) -> None:
    """Refuse what is no probability."""
    if not 0.0 <= p <= 1.0:
        raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
