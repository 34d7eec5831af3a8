import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

y = torch.randint(0, 4, (96,))
x = torch.rand(96, 12, 12, 3)  # as image files are read
for i in range(96):
    row, column = 6 * (int(y[i]) // 2), 6 * (int(y[i]) % 2)
    x[i, row : row + 6, column : column + 6] += 0.5

loader = DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True)
print(doctor.check_inputs(loader))  # <- C13

model = nn.Sequential(nn.Conv2d(12, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(60, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for epoch in range(3):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
