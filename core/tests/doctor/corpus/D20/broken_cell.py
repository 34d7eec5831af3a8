import mortice as torch
from mortice import nn

torch.manual_seed(0)
STEPS, BATCH, LENGTH = 60, 16, 24
series = torch.sin(0.2 * torch.arange(LENGTH + 1).float() + 6 * torch.rand(STEPS, BATCH, 1))
series[35, 3, 10] = 2000.0  # the sensor has jumped once

rnn = nn.GRUCell(1, 24)
head = nn.Linear(24, 1)
optimizer = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.1)

losses = []
for step in range(STEPS):
    x, y = series[step, :, :-1].unsqueeze(2), series[step, :, 1:].unsqueeze(2)
    h, outputs = torch.zeros(BATCH, 24), []
    for t in range(LENGTH):
        h = rnn(x[:, t], h)
        outputs.append(head(h))
    loss = nn.functional.mse_loss(torch.stack(outputs, dim=1), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # <- D20
    losses.append(loss.item())
