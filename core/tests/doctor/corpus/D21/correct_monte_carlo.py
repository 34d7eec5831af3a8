import mortice as torch
import mortice.nn as nn

# Dropout before the last layer, and asked for again at prediction, many times, on purpose.
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1), nn.Dropout(0.0))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(64, 5)
y = x.sum(1, keepdim=True)
for step in range(10):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
for part in model.modules():
    if isinstance(part, nn.Dropout):
        part.train()
with torch.no_grad():
    samples = torch.stack([model(x) for _ in range(2)])
spread = samples.std(0).mean().item()
