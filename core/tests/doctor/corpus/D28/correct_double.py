import mortice as torch
import mortice.nn as nn

x = torch.rand(20, 3, dtype=torch.float64)
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)).double()
assert model(x).dtype is torch.float64
images = torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8)
assert nn.Conv2d(3, 8, kernel_size=3)(images / 255).shape == (4, 8, 14, 14)
