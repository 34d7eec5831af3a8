# static
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 8, batch_first=True)

    def forward(self, x, lengths):
        lengths.unsqueeze(1)  # <- D39
        return self.rnn(x)[0] / lengths
