import mortice as torch
import mortice.nn as nn

torch.manual_seed(0)
data, target = torch.randn(64, 6), torch.randn(64, 1)

# The hidden weights are meant to be learned "from nothing", and the output averages the units.
W1 = torch.zeros(6, 10).t().contiguous().requires_grad_()
b1 = torch.zeros(10, requires_grad=True)
W2 = torch.full((1, 10), 0.1, requires_grad=True)
opt = torch.optim.Adam([W1, b1, W2], lr=1e-2)

for i in range(10):
    h = torch.sigmoid(data @ W1.t() + b1)
    loss = nn.functional.mse_loss(h @ W2.t(), target)
    opt.zero_grad()
    loss.backward()
    opt.step()  # <- D12
