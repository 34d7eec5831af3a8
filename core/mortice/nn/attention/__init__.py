"""Multi-head attention as a module, and the choice among attention kernels that PyTorch has."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

import mortice
from mortice.nn import functional as F
from mortice.nn import init
from mortice.nn.linear import Linear
from mortice.nn.module import Module
from mortice.nn.parameter import Parameter


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear under the name that PyTorch gives and prints for the projection of the heads."""


_WEIGHTS = ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight")


class MultiheadAttention(Module):
    """Attention of several heads between projections; inputs are (L, N, E), (N, L, E) with `batch_first`, or (L, E)."""

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        if embed_dim % num_heads:
            raise AssertionError(f"embed_dim must be divisible by num_heads; got {embed_dim} and {num_heads}.")
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn

        def empty(*shape: int) -> Parameter:
            return Parameter(mortice.empty(shape, device=device, dtype=dtype))

        widths = {"in_proj_weight": (3 * embed_dim, embed_dim)}
        if not self._qkv_same_embed_dim:
            sources = {"q": embed_dim, "k": self.kdim, "v": self.vdim}
            widths = {f"{name}_proj_weight": (embed_dim, size) for name, size in sources.items()}
        for name in _WEIGHTS:
            self.register_parameter(name, empty(*widths[name]) if name in widths else None)
        self.register_parameter("in_proj_bias", empty(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = empty(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = empty(1, 1, embed_dim) if add_bias_kv else None
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in _WEIGHTS:
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True,
        attn_mask: Any = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Return the attended values and, if asked, the weights; a bool mask is True where a key takes no part."""
        swap = self.batch_first and query.ndim == 3
        if swap:
            moved: dict[int, Any] = {}  # the same tensor stays the same: one product projects it
            query, key, value = (moved.setdefault(id(x), x.transpose(0, 1)) for x in (query, key, value))
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k,
            self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training,
            key_padding_mask, need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return out.transpose(0, 1) if swap else out, weights


class SDPBackend(enum.IntEnum):
    """The kernels that PyTorch chooses among; mortice has one, which each of its backends may replace."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Choose kernels of attention for a block: MATH alone asks for the core's body, any other for the device's fastest."""
    chosen = list(backends) if isinstance(backends, (list, tuple)) else [backends]
    if not all(isinstance(b, SDPBackend) for b in chosen):
        raise AssertionError(f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {backends!r}.")
    flash, efficient = SDPBackend.FLASH_ATTENTION in chosen, SDPBackend.EFFICIENT_ATTENTION in chosen
    library = any(b is not SDPBackend.MATH for b in chosen)
    math = SDPBackend.MATH in chosen
    with mortice.backends.cuda.chosen(flash=flash, math=math, mem_efficient=efficient, cudnn=library):
        yield
