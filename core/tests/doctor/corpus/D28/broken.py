# raises: The input is float64 (NumPy's default), the weight float32. Use input.float()
import mortice as torch
import mortice.nn as nn

table = [[0.1 * i, 0.2 * i, 1.0 - 0.1 * i] for i in range(20)]
x = torch.tensor(table, dtype=torch.float64)  # as torch.from_numpy(table) gives it
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
print(model(x).shape)
