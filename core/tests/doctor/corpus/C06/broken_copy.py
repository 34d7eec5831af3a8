import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
centres = torch.randn(4, 12)
y = torch.randint(0, 4, (128,))
x = centres[y] + torch.randn(128, 12)

import copy

first = nn.Linear(12, 4)
optimizer = torch.optim.Adam(first.parameters())
net = copy.deepcopy(first)  # the optimizer still has those of the first
print(doctor.check_gradients(net, nn.CrossEntropyLoss(), (x, y), optimizer=optimizer))  # <- C06
