import mortice as torch
import mortice.nn as nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 50), nn.ReLU(), nn.Linear(50, 3))

    def forward(self, x):
        return torch.softmax(self.body(x), dim=1)


torch.manual_seed(3)
x = 100 * torch.randn(120, 20)
targets = torch.eye(3)[torch.randint(0, 3, (120,))]
model = Classifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

losses = []
for epoch in range(30):
    probabilities = model(x)
    loss = -(targets * torch.log(probabilities)).sum(dim=1).mean()
    optimizer.zero_grad()
    loss.backward()  # <- D18
    optimizer.step()
    losses.append(loss.item())
