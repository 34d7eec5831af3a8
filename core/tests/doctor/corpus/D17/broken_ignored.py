import mortice as torch
import mortice.nn as nn
from mortice import doctor

torch.manual_seed(0)
x = torch.randn(64, 5)
y = x @ torch.randn(5, 1)
model = lambda: nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
sgd = lambda net, strength: torch.optim.SGD(net.parameters(), lr=0.05)  # strength is not passed on
doctor.check_regularization(model, nn.MSELoss(), (x, y), optimizer=sgd)  # <- D17
