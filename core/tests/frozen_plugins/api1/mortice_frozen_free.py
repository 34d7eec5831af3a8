"""A backend written against api 1 that does some free kernels itself, and says where its memory is."""

from mortice.backends import BackendInfo, hookimpl

CALLS = []


def load():
    import numpy as np
    from mortice_frozen_api1 import load as required

    class FreeBackend(type(required())):
        def device_names(self):
            return ["frozen_free"]

        def device_of(self, x):
            return self.device("frozen_free")

        # free kernels: of one operand, of two, of a fused op, of an optimizer

        def expm1(self, x):
            CALLS.append("expm1")
            with np.errstate(all="ignore"):
                return np.asanyarray(np.expm1(x))

        def atan2(self, x, y):
            CALLS.append("atan2")
            return np.asanyarray(np.arctan2(x, y))

        def softmax(self, x, *, axis):
            CALLS.append("softmax")
            e = np.exp(x - x.max(axis=axis, keepdims=True))
            return e / e.sum(axis=axis, keepdims=True)

        def flip(self, x, axis):
            CALLS.append("flip")
            return np.flip(x, axis)

        # free housekeeping

        def strides_of(self, x):
            return tuple(s // x.itemsize for s in x.strides)

        def device_label(self, device):
            return "a frozen device"

    return FreeBackend()


@hookimpl
def mortice_backends():
    return [BackendInfo("frozen_free", ("frozen_free",), load, priority=-1, needs="numpy", api=1)]
