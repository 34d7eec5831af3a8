"""A loss may be nan or infinite where the step is then not taken: by hand, or by a scaler that looks for it."""

import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
for step in range(30):
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    if step == 12:
        x[3, 2] = float("inf")
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

for step in range(30):
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    if step == 12:
        x[3, 2] = float("nan")
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if torch.isfinite(norm):
        optimizer.step()
