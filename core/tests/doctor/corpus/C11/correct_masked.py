import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x = torch.randn(64, 6)
x = torch.where(x > 2, torch.full_like(x, float("nan")), x)
x = torch.where(x.isnan(), x.nanmean(0), x)
print(doctor.check_inputs((x, torch.randint(0, 2, (64,)))))
