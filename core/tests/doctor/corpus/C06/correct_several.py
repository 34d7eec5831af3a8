import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
centres = torch.randn(4, 12)
y = torch.randint(0, 4, (128,))
x = centres[y] + torch.randn(128, 12)

net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
optimizers = [torch.optim.SGD(net[0].parameters(), lr=0.1), torch.optim.Adam(net[2].parameters())]
print(doctor.check_gradients(net, nn.CrossEntropyLoss(), (x, y), optimizer=optimizers))
