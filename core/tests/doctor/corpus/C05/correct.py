import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
rooms = torch.rand(200, 3)
price = 200_000 + 100_000 * rooms.sum(1, keepdim=True)
price = (price - price.mean()) / price.std()
net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))

print(doctor.check_gradients(net, F.mse_loss, (rooms, price)))

optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
losses = []
for step in range(40):
    optimizer.zero_grad()
    loss = F.mse_loss(net(rooms), price)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
