import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# A feature that tells much, but not all.
x = torch.randn(300, 6)
y = (x[:, 2] + 0.1 * torch.randn(300) > 0).long()
print(doctor.check_inputs((x, y)))
