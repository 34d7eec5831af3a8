"""TensorBoard's event files, written as `torch.utils.tensorboard` writes them; no package is needed to write them.

`pip install tensorboard` and `tensorboard --logdir runs` show them.
"""

from mortice.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
