import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(128, 6)
y = (x[:, 0] > 0).float()
loader = DataLoader(TensorDataset(x, y), batch_size=16)
model = nn.Sequential(nn.Linear(6, 1), nn.Sigmoid())
model.eval()
correct = 0
with torch.no_grad():
    for inputs, labels in loader:
        predicted = (model(inputs) > 0.5).float()
        correct += (predicted == labels).sum().item()  # <- D07
print(f"accuracy {correct / 128:.2f}")
