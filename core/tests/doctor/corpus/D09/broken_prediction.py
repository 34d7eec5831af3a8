import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
x, y = torch.randn(96, 6), torch.randint(0, 3, (96,))
loader = DataLoader(TensorDataset(x, y), batch_size=24)
model.eval()
hits = 0
with torch.no_grad():
    for inputs, labels in loader:
        probabilities = torch.softmax(model(inputs), dim=0)  # <- D09
        confidence, predicted = probabilities.max(1)
        hits += (predicted == labels).sum().item()
