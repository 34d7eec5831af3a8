import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(10, 6)

    def forward(self, x):
        return F.softmax(self.fc(x), dim=-1)


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(64, 10)
tags = (torch.rand(64, 6) < 0.4).float()
for step in range(8):
    loss = F.mse_loss(model(x), tags)  # <- D11
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
