import mortice as torch
import mortice.nn as nn

torch.manual_seed(3)
centres = 2 * torch.randn(6, 20)
labels = torch.randint(0, 6, (512,))
features = centres[labels] + torch.randn(512, 20)

model = nn.Sequential(
    nn.Linear(20, 32),
    nn.ReLU(),
    nn.Linear(32, 6),
    nn.ReLU(),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

losses = []
for step in range(60):
    batch = torch.randint(0, 512, (64,))
    optimizer.zero_grad()
    loss = criterion(model(features[batch]), labels[batch])  # <- D10
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
