# static
from mortice import nn

policy = nn.Sequential(
    nn.Linear(4, 64),
    nn.Tanh(),
    nn.Linear(64, 2),
    nn.Softmax(),  # <- D09
)
