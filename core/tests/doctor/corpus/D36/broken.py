import mortice as torch
from mortice import nn

torch.manual_seed(0)
x = torch.randn(200, 6)
y = (x[:, 0] + x[:, 1] > 0).float().unsqueeze(1)

model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

losses = []
for epoch in range(20):
    for i in range(0, 200, 50):
        optimizer.zero_grad()
        loss = criterion(model(x[i : i + 50]), y[i : i + 50])
        loss.backward()
        optimizer.step()  # <- D36
        losses.append(loss.item())
