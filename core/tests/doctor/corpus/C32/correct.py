import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

centres = 2 * torch.randn(5, 10)
y = torch.randint(0, 5, (320,))
x = centres[y] + torch.randn(320, 10)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
result = doctor.find_lr(model, optimizer, nn.CrossEntropyLoss(), loader)
print(result)

losses = []
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
