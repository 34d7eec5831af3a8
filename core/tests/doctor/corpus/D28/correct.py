import mortice as torch
import mortice.nn as nn

table = [[0.1 * i, 0.2 * i, 1.0 - 0.1 * i] for i in range(20)]
x = torch.tensor(table, dtype=torch.float64).float()
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
assert model(x).dtype is torch.float32
