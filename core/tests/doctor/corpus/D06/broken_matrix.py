import mortice as torch
import mortice.nn as nn


class Mixer(nn.Module):
    """Mixes over positions: the linear layer works on the last dim."""

    def __init__(self, tokens=12, size=20):
        super().__init__()
        self.tokens = nn.Linear(tokens, tokens)
        self.channels = nn.Linear(size, 2)

    def forward(self, x):
        b, t, c = x.size()
        y = self.tokens(x.reshape(b, c, t))  # <- D06
        y = y.transpose(1, 2)
        return self.channels(x + y).mean(1)


torch.manual_seed(0)
model = Mixer()
optimizer = torch.optim.Adam(model.parameters())
for step in range(5):
    x = torch.randn(8, 12, 20)
    loss = (model(x) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
