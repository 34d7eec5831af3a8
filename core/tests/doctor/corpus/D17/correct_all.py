import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)
x = torch.randn(64, 5)
y = x @ torch.randn(5, 1)
print(doctor.check_regularization(lambda: nn.Linear(5, 1), nn.MSELoss(), (x, y)))
