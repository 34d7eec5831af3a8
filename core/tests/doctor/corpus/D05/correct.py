import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
labels = torch.randint(0, 4, (96,))
images = torch.randn(96, 1, 10, 10) + 0.5 * labels.reshape(-1, 1, 1, 1)

model = nn.Sequential(
    nn.Conv2d(1, 8, 3, bias=False),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.Conv2d(8, 16, 3, bias=False),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(16, 4),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()

losses = []
for epoch in range(4):
    for i in range(0, 96, 32):
        optimizer.zero_grad()
        output = model(images[i : i + 32])
        loss = criterion(output, labels[i : i + 32])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
