# Strengths that are too small to cost much still shrink the weights a little.
import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)
x = torch.randn(64, 6)
y = x[:, :1] - x[:, 1:2]
make = lambda: nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
print(doctor.check_regularization(make, nn.MSELoss(), (x, y), strengths=(0, 1e-2, 1e-1)))
