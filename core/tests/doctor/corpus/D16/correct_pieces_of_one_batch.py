import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Truncated backpropagation inside a batch of long sequences: whole sequences are shuffled, and each begins anew.
torch.manual_seed(0)
x = torch.randn(96, 40, 2)
y = x.cumsum(1)[:, :, :1].tanh()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
lstm, head = nn.LSTM(2, 16, batch_first=True), nn.Linear(16, 1)
parameters = [*lstm.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=0.01)
for epoch in range(2):
    for inputs, targets in loader:
        h, c = torch.zeros(1, len(inputs), 16), torch.zeros(1, len(inputs), 16)
        for start in range(0, 40, 10):
            out, (h, c) = lstm(inputs[:, start : start + 10], (h.detach(), c.detach()))
            loss = nn.functional.mse_loss(head(out), targets[:, start : start + 10])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
