# With label smoothing the loss does not go to 0, and that is right.
import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)
x, y = torch.randn(32, 10), torch.randint(0, 6, (32,))
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 6))
print(doctor.overfit_one_batch(model, nn.CrossEntropyLoss(label_smoothing=0.1), (x, y)))
