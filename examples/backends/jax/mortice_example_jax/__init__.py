"""JAX as a backend of mortice: the whole plugin. Importing it is cheap; `load` imports the library."""

from mortice.backends import BackendInfo, from_namespace, hookimpl


def load():
    """Import JAX and return the backend."""
    import jax
    import jax.numpy as jnp

    # mortice's indices are int64, and JAX narrows 64-bit types to 32 bits unless it is told not to.
    jax.config.update("jax_enable_x64", True)

    class Namespace:
        """jax.numpy, with a division that is IEEE 754's."""

        def __getattr__(self, name):
            return getattr(jnp, name)

        def divide(self, x, y):
            # XLA divides by a broadcast operand as it multiplies by the reciprocal, which rounds twice:
            # https://github.com/tensorflow/tensorflow/issues/24061. Broadcast beforehand, it sees two arrays.
            return jnp.divide(*(jnp.broadcast_arrays(x, y) if x.shape != y.shape else (x, y)))

    return from_namespace(Namespace(), "jax", register=False)


@hookimpl
def mortice_backends():
    """Offer `jax`, for those who ask for it."""
    return [BackendInfo("jax", ("cpu", "cuda"), load, needs="jax")]
