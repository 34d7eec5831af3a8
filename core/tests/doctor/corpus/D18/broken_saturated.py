import mortice as torch
import mortice.nn as nn

torch.manual_seed(1)
prototypes = torch.randint(0, 256, (3, 64))
labels = torch.randint(0, 3, (300,))
pixels = (prototypes[labels] + 40 * torch.randn(300, 64)).clamp(0, 255)  # 0 to 255, as read from a file


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, 3)

    def forward(self, x):
        h = torch.tanh(self.fc1(x))  # <- D18
        return self.fc2(h)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
losses = []
for epoch in range(8):
    for x, y in zip(pixels.split(30), labels.split(30)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
