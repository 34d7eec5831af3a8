import mortice as torch
from mortice import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(20, 16), nn.ReLU())
head_a, head_b = nn.Linear(16, 3), nn.Linear(16, 1)
parameters = [*encoder.parameters(), *head_a.parameters(), *head_b.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-3)
scaler = torch.amp.GradScaler("cpu")

for step in range(12):
    x, a, b = torch.randn(16, 20), torch.randint(0, 3, (16,)), torch.randn(16, 1)
    features = encoder(x)
    scaler.scale(nn.functional.cross_entropy(head_a(features), a)).backward(retain_graph=True)
    scaler.scale(nn.functional.mse_loss(head_b(features), b)).backward()
    scaler.step(optimizer)  # <- D03
    scaler.update()
