# raises: a graph is retained since
import mortice as torch
import mortice.nn as nn


class Grid(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x, resolution):
        return self.fc(x) * torch.ones(resolution**3).mean()


model, x = Grid(), torch.randn(4, 8)
kept = []
for resolution in (10, 20, 10**5):
    loss = model(x, resolution).square().mean()
    loss.backward(retain_graph=True)
    kept.append(loss)
