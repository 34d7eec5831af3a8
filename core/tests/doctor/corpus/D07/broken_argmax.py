import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = torch.randn(128, 6), torch.randint(0, 3, (128,))
loader = DataLoader(TensorDataset(x, y), batch_size=16)
model = nn.Linear(6, 3)
model.eval()
correct = 0
with torch.no_grad():
    for inputs, labels in loader:
        predicted = torch.argmax(model(inputs))
        correct += (predicted == labels).sum().item()  # <- D07
print(f"accuracy {correct / 128:.2f}")
