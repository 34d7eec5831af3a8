"""A backend written against api 1 that does some free kernels and free housekeeping itself."""

import math
from collections import Counter

from mortice.backends import BackendInfo, hookimpl

CALLS = Counter()


def load():
    from mortice_frozen_lists import plain
    from mortice_frozen_lists.backend import FrozenListsBackend

    class FreeBackend(FrozenListsBackend):
        def device_names(self):
            return ["frozen_free:0", "frozen_free:1"]

        # free kernels: of one operand, of two, of a fused op, of movement

        def expm1(self, x):
            CALLS["expm1"] += 1
            return plain.unary(plain.guarded(math.expm1), x)

        def atan2(self, x, y):
            CALLS["atan2"] += 1
            return plain.binary(math.atan2, x, y)

        def softmax(self, x, *, axis):
            CALLS["softmax"] += 1
            e = self.exp(self.subtract(x, self.max(x, axis=axis, keepdims=True)))
            return self.divide(e, self.sum(e, axis=axis, keepdims=True))

        def flip(self, x, axis):
            CALLS["flip"] += 1
            for i in axis if isinstance(axis, tuple) else (axis,):
                x = plain.along(x, i, lambda row: row[::-1])
            return x

        # free housekeeping

        def copy_to(self, x, device):
            CALLS["copy_to"] += 1
            out = self.copy(x)
            out.device = device
            return out

        def item(self, x):
            CALLS["item"] += 1
            return bool(x.data[0]) if x.dtype.name == "bool" else x.data[0]

        def device_label(self, device):
            return "a frozen device"

    return FreeBackend()


@hookimpl
def mortice_backends():
    return [BackendInfo("frozen_free", ("frozen_free",), load, priority=-1, api=1)]
