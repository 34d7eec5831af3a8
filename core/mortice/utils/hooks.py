"""What PyTorch keeps in torch.utils.hooks: the handle that removes a hook."""

from mortice.nn.hooks import Handle as RemovableHandle

__all__ = ["RemovableHandle"]
