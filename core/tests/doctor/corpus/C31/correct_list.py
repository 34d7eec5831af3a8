import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

batches = [(x := torch.randn(16, 3), x.sum(1, keepdim=True)) for _ in range(4)]
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
result = doctor.find_lr(model, optimizer, nn.MSELoss(), batches)
optimizer.param_groups[0]["lr"] = result.suggestion
