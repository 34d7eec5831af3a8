"""JAX as a backend of mortice: the whole plugin. Importing it is cheap; `load` imports the library."""

from mortice.backends import BackendInfo, from_namespace, hookimpl


def load():
    """Import JAX and return the backend."""
    import jax
    import jax.numpy as jnp

    # mortice's indices are int64, and JAX narrows 64-bit types to 32 bits unless it is told not to.
    jax.config.update("jax_enable_x64", True)

    # Made of other functions by mortice instead. XLA computes them of half-precision numbers in half precision, and the
    # hyperbolic ones by exp(x + log(1/2)), which is wrong by up to 8 units in the last place:
    # https://github.com/pearu/functional_algorithms/issues/51, https://github.com/jax-ml/jax/issues/39707.
    ours = {"log2", "log10", "log1p", "tan", "asin", "sinh", "cosh", "asinh", "acosh", "atanh", "hypot"}

    class Namespace:
        """jax.numpy, with arithmetic that is IEEE 754's."""

        def __getattr__(self, name):
            if name in ours:
                raise AttributeError(name)
            return getattr(jnp, name)

        def divide(self, x, y):
            # XLA divides by a broadcast operand as it multiplies by the reciprocal, which rounds twice:
            # https://github.com/tensorflow/tensorflow/issues/24061. Broadcast beforehand, it sees two arrays.
            return jnp.divide(*(jnp.broadcast_arrays(x, y) if x.shape != y.shape else (x, y)))

        def floor_divide(self, x, y):
            # A quotient that is zero may have the wrong sign: https://github.com/jax-ml/jax/pull/40170.
            quotient = jnp.floor_divide(x, y)
            if not jnp.issubdtype(quotient.dtype, jnp.floating):
                return quotient
            one = jnp.ones((), quotient.dtype)
            return jnp.where(quotient == 0, jnp.copysign(quotient, jnp.copysign(one, x) * jnp.copysign(one, y)), quotient)

        def pow(self, x, y):
            # By exp(y * log(x)), whose error grows with the exponent: complex numbers of single precision in double.
            if jnp.result_type(x, y) == jnp.complex64:
                return jnp.pow(jnp.astype(x, jnp.complex128), y).astype(jnp.complex64)
            return jnp.pow(x, y)

    return from_namespace(Namespace(), "jax", register=False)


@hookimpl
def mortice_backends():
    """Offer `jax`, for those who ask for it."""
    return [BackendInfo("jax", ("cpu", "cuda"), load, needs="jax")]
