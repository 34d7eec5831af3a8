"""PyTorch as a backend of mortice: the whole plugin. Importing it is cheap; `load` imports the library."""

from mortice.backends import BackendInfo, from_namespace, hookimpl


def load():
    """Import PyTorch and return the backend."""
    import torch
    from array_api_compat import torch as xp

    class Namespace:
        """PyTorch by the standard's names, with a square root that is IEEE 754's."""

        def __getattr__(self, name):
            return getattr(xp, name)

        def sqrt(self, x):
            # On x86 it comes from a vector library that may be one unit off: https://github.com/pytorch/pytorch/issues/31250.
            if x.dtype is torch.float32:
                return torch.sqrt(x.to(torch.float64)).to(torch.float32)
            return rounded(x) if x.dtype is torch.float64 else torch.sqrt(x)

    def rounded(x):
        """Correct a square root by what its square leaves over, which is exact in two numbers (Dekker's product)."""
        one = x.new_ones(())
        scale = torch.where(x < 1e-250, one * 2.0**200, torch.where(x > 1e250, one * 2.0**-200, one))
        y = x * scale * scale
        root = torch.sqrt(y)
        high = root * 134217729.0
        high = high - (high - root)
        low, square = root - high, root * root
        left = (y - square) - (((high * high - square) + 2.0 * high * low) + low * low)
        step = left / (2.0 * root)
        # The term of second order is negative and too small to count, but where the first one ends in a tie.
        better = (root + (step - step.abs() * 2.0**-52)) / scale
        return torch.where((x > 0) & (x < float("inf")), better, root)

    return from_namespace(Namespace(), "torch", register=False)


@hookimpl
def mortice_backends():
    """Offer `torch`, for those who ask for it."""
    return [BackendInfo("torch", ("cpu", "cuda"), load, needs="torch array-api-compat")]
