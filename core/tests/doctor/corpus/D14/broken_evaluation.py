import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F

torch.manual_seed(0)
model = nn.Linear(10, 3).eval()
x, y = torch.randn(64, 10), torch.randint(0, 3, (64,))
total = 0.0
with torch.no_grad():
    for i in range(0, 64, 16):
        p = F.softmax(model(x[i : i + 16]), dim=1)
        total += F.nll_loss(p, y[i : i + 16], reduction="sum").item()  # <- D14
