import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)
x = torch.randn(256, 10)
y = x @ torch.randn(10, 1) + 0.1 * torch.randn(256, 1)


def train(lr):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


tried = {lr: train(lr) for lr in (0.001, 0.01, 0.1, 1.0)}
result = doctor.sweep_verdict(tried)
losses = list(tried.values())
print(result)
