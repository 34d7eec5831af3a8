import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# Drawn with replacement on purpose, to balance classes.
from mortice.utils.data import WeightedRandomSampler

x, y = torch.randn(100, 6), (torch.arange(100) < 10).long()
weights = torch.where(y == 1, 9.0, 1.0)
loader = DataLoader(TensorDataset(x, y), batch_size=20, sampler=WeightedRandomSampler(weights.tolist(), 100))
print(doctor.check_inputs(loader))
