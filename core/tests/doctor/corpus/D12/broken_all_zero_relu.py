import mortice as torch
from mortice import nn


def init_weights(m):
    if isinstance(m, (nn.Linear, nn.Conv2d)):
        m.weight.data.fill_(0)
        m.bias.data.fill_(0)


torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 16), nn.ReLU(), nn.Linear(16, 3))
model.apply(init_weights)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()

for step in range(8):
    images, labels = torch.randn(16, 1, 6, 6), torch.randint(0, 3, (16,))
    optimizer.zero_grad()
    criterion(model(images), labels).backward()
    optimizer.step()  # <- D12
