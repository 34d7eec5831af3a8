import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)
from mortice.utils.data import WeightedRandomSampler

sick = torch.rand(600) < 0.02
x = torch.randn(600, 6) + sick[:, None]
y = sick.long()
weights = torch.where(y == 1, 49.0, 1.0).tolist()
print(doctor.check_dataset(DataLoader(TensorDataset(x, y), batch_size=32, sampler=WeightedRandomSampler(weights, 600))))
