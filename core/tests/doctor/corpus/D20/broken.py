import mortice as torch
from mortice import nn

torch.manual_seed(0)
STEPS, BATCH, LENGTH = 60, 16, 40
series = torch.sin(0.2 * torch.arange(LENGTH + 1).float() + 6 * torch.rand(STEPS, BATCH, 1))
series[35, 3, 10] = 2000.0  # the sensor has jumped once

rnn = nn.LSTM(1, 32, batch_first=True)
head = nn.Linear(32, 1)
optimizer = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.1)

losses = []
for step in range(STEPS):
    x, y = series[step, :, :-1].unsqueeze(2), series[step, :, 1:].unsqueeze(2)
    loss = nn.functional.mse_loss(head(rnn(x)[0]), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # <- D20
    losses.append(loss.item())
