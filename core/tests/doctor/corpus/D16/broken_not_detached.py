# raises: Call state.detach() between batches
import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

STREAMS, LENGTH, PIECES = 16, 8, 20

# Sixteen long waves, cut into pieces: piece k of every wave, then piece k + 1 of every wave.
torch.manual_seed(0)
speed = 0.1 + 0.4 * torch.rand(STREAMS, 1)
time = torch.arange(LENGTH * PIECES + 1).float()
waves = torch.sin(speed * time + 6 * torch.rand(STREAMS, 1))
x = torch.cat([waves[:, k * LENGTH : (k + 1) * LENGTH] for k in range(PIECES)])
y = torch.cat([waves[:, k * LENGTH + 1 : (k + 1) * LENGTH + 1] for k in range(PIECES)])
loader = DataLoader(TensorDataset(x.unsqueeze(2), y.unsqueeze(2)), batch_size=STREAMS, shuffle=False)

lstm = nn.LSTM(1, 24, batch_first=True)
head = nn.Linear(24, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=0.01)

losses = []
state = None
for epoch in range(2):
    state = None
    for inputs, targets in loader:
        output, state = lstm(inputs, state)
        loss = criterion(head(output), targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(lstm.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
