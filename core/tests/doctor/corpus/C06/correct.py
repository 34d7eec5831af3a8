import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
centres = torch.randn(4, 12)
y = torch.randint(0, 4, (128,))
x = centres[y] + torch.randn(128, 12)

net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
net[4] = nn.Linear(32, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

print(doctor.check_gradients(net, F.cross_entropy, (x, y), optimizer=optimizer))

losses = []
for step in range(40):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
