import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
centres = torch.randn(4, 12)
y = torch.randint(0, 4, (128,))
x = centres[y] + torch.randn(128, 12)

net = nn.Sequential(nn.Linear(12, 32).requires_grad_(False), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, net.parameters()))
print(doctor.check_gradients(net, nn.CrossEntropyLoss(), (x, y), optimizer=optimizer))
