import mortice as torch
from mortice import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 16), nn.Tanh())
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.features(x))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randn(128, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
losses = []
for step in range(40):
    if step == 10:  # from here on the features are to stay
        kept = [p.detach().clone() for p in model.features.parameters()]
        model.features.requires_grad_(False)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
moved = sum((p - k).abs().sum().item() for p, k in zip(model.features.parameters(), kept))
print("the features have moved by", moved)
