import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
centres = torch.randn(4, 12)
y = torch.randint(0, 4, (128,))
x = centres[y] + torch.randn(128, 12)

# The last layer begins at zero on purpose: the others get gradients from the second step on.
net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
nn.init.zeros_(net[2].weight)
nn.init.zeros_(net[2].bias)
print(doctor.check_gradients(net, nn.CrossEntropyLoss(), (x, y)))
