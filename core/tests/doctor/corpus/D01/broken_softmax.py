import mortice as torch
import mortice.nn as nn
from mortice import doctor

torch.manual_seed(1)
x = torch.randn(48, 16)
y = torch.randint(0, 8, (48,))
model = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 8), nn.Softmax(dim=1))
report = doctor.overfit_one_batch(model, nn.CrossEntropyLoss(), (x, y))  # <- D01
print(report)
