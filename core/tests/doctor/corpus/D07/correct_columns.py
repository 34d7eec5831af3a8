import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(128, 6)
weights = torch.rand(128, 1)
y = (x[:, :1] > 0).float()
loader = DataLoader(TensorDataset(x, y, weights), batch_size=32)
model = nn.Linear(6, 1)
optimizer = torch.optim.Adam(model.parameters())
correct = 0
for inputs, labels, weight in loader:
    out = model(inputs)
    loss = (weight * (out - labels) ** 2).mean() + nn.functional.l1_loss(out, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    predicted = (out > 0.5).float()
    correct += predicted.eq(labels.view_as(predicted)).sum().item()

# The seeds' idiom: a column of indices against labels that are viewed as it.
model = nn.Linear(6, 4)
labels = torch.randint(0, 4, (128,))
with torch.no_grad():
    best = model(x).argmax(dim=1, keepdim=True)
    correct = best.eq(labels.view_as(best)).sum().item()
    everywhere = model(x).argmax()
    row, column = everywhere // 4, everywhere % 4
