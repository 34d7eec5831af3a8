import mortice as torch
import mortice.nn as nn

model, data = nn.Linear(16, 4), torch.randn(1000, 16)
model.eval()
with torch.no_grad():
    outputs = torch.cat([model(chunk) for chunk in data.split(100)])
assert outputs.shape == (1000, 4)
