import mortice as torch
from mortice import nn

torch.manual_seed(0)
x = torch.linspace(-2, 2, 40).unsqueeze(1)
y = x**2
net = nn.Sequential(nn.Linear(1, 10), nn.Tanh(), nn.Linear(10, 1))
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=6, line_search_fn="strong_wolfe")
criterion = nn.MSELoss()
losses = []
for step in range(8):

    def closure():
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        losses.append(loss.item())
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        error = criterion(net(x), y).item()
