import mortice as torch
import mortice.nn as nn


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.value, self.gate, self.out = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 1)

    def forward(self, x):
        return self.out(self.value(x) * torch.sigmoid(self.gate(x))).squeeze(1)


torch.manual_seed(0)
model = Gated()
x = torch.randn(64, 8)
y = (x[:, 0] > 0).float()
logits_loss, loss = nn.BCEWithLogitsLoss(), nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for step in range(15):
    out = model(x)
    total = logits_loss(out, y) + loss(torch.sigmoid(out), y)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
