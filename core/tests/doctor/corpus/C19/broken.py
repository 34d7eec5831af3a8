import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

centres = torch.randn(3, 8)
y = torch.randint(0, 3, (240,))
x = centres[y] + torch.randn(240, 8)
order = y.argsort()
x, y = x[order], y[order]  # folder by folder
loader = DataLoader(TensorDataset(x, y), batch_size=24)
print(doctor.check_inputs(loader))  # <- C19

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for epoch in range(3):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
